package bucket

import (
	"cmp"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"

	"prony.example/internal/report/runs"
	"prony.example/record"
)

// sumKey is the metadata key of an object's SHA-256. Its ETag is an MD5 only if a single PUT stored
// it without KMS encryption.
const sumKey = "Sha256"

// settled is the age, by the server's clock, from which an object's modification time identifies
// its content.
const settled = 3 * time.Second

// sums are checksums of a file in hexadecimal.
type sums struct{ md5, sha256 string }

func sumsOf(r io.Reader) (sums, error) {
	of5, of256 := md5.New(), sha256.New()
	_, err := io.Copy(io.MultiWriter(of5, of256), r)
	return sums{hex.EncodeToString(of5.Sum(nil)), hex.EncodeToString(of256.Sum(nil))}, err
}

// Push copies a run, or all runs of a folder and the name of the last good one, into the bucket.
func (b *Bucket) Push(ctx context.Context, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, record.RunFile)); err == nil {
		return b.pushRun(ctx, dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("push: %w", err)
	}
	runs := 0
	for _, e := range entries {
		run := filepath.Join(dir, e.Name())
		if _, err := os.Stat(filepath.Join(run, record.RunFile)); err != nil || !e.IsDir() {
			continue
		}
		runs++
		if err := b.pushRun(ctx, run); err != nil {
			return err
		}
	}
	if runs == 0 {
		return fmt.Errorf("push %s: the folder contains no run; give a run's folder, or a folder "+
			"of runs",
			dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("push: %w", err)
	}
	defer root.Close() //nolint:errcheck // nothing is written below it
	if _, err := root.Stat(Good); err == nil {
		there, err := b.client.StatObject(ctx, b.name, b.prefix+Good, minio.StatObjectOptions{})
		if err != nil && minio.ToErrorResponse(err).Code != minio.NoSuchKey {
			return b.why("push "+Good, err)
		}
		_, err = b.send(ctx, root, Good, Good, there)
		return err
	}
	return nil
}

func (b *Bucket) pushRun(ctx context.Context, dir string) error {
	run := filepath.Base(dir)
	if !runs.Identifier(run) {
		return fmt.Errorf("push %s: the name of a run may have only letters, digits and . _ + -",
			run)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("push: %w", err)
	}
	defer root.Close() //nolint:errcheck // nothing is written below it
	var files []string
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && proper(name) {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("push %s: %w", run, err)
	}
	runList, err := b.list(ctx, run+"/")
	if err != nil {
		return err
	}
	return b.all(ctx, "push", run, files, func(ctx context.Context, file string) (bool, error) {
		return b.send(ctx, root, file, run+"/"+file, runList[run][file])
	})
}

// all copies files, several in parallel, and the head after all others.
func (b *Bucket) all(ctx context.Context, verb, run string, files []string,
	copy func(ctx context.Context, file string) (bool, error)) error {
	slices.SortFunc(files, headLast)
	last := len(files) - 1
	if last < 0 || files[last] != record.RunFile {
		return fmt.Errorf("%s %s: its %s is not a file", verb, run, record.RunFile)
	}
	copied := make([]bool, len(files))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(abreast)
	for i, file := range files[:last] {
		group.Go(func() (err error) {
			copied[i], err = copy(within, file)
			return err
		})
	}
	err := group.Wait()
	if err == nil {
		copied[last], err = copy(ctx, files[last])
	}
	if err != nil {
		return err
	}
	n := 0
	for _, did := range copied {
		if did {
			n++
		}
	}
	b.say(fmt.Sprintf("%s %s: %d files, of these %d were already there",
		verb, run, n, len(files)-n))
	return nil
}

// send stores a file as an object, unless the object exists with the same content.
func (b *Bucket) send(ctx context.Context, root *os.Root, file, key string,
	there object) (sent bool, err error) {
	f, err := root.Open(file)
	if err != nil {
		return false, fmt.Errorf("push: %w", err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	info, err := f.Stat()
	if err != nil {
		return false, fmt.Errorf("push: %w", err)
	}
	size := info.Size()
	if size > maxFile {
		return false, fmt.Errorf("push %s: the file has %d bytes, but an object can have at most "+
			"%d; remove the file",
			key, size, int64(maxFile))
	}
	of, err := sumsOf(io.NewSectionReader(f, 0, size))
	if err != nil {
		return false, fmt.Errorf("push %s: %w", key, err)
	}
	if is, err := b.same(ctx, there, size, of); is || err != nil {
		return false, err
	}
	_, err = b.client.Client.PutObject(ctx, b.name, b.prefix+key, io.NewSectionReader(f, 0, size),
		size, minio.PutObjectOptions{DisableMultipart: true, SendContentMd5: true,
			UserMetadata: map[string]string{sumKey: of.sha256}})
	if err != nil {
		return false, b.why("push "+key, err)
	}
	return true, nil
}

// same reports whether an object has this content.
func (b *Bucket) same(ctx context.Context, o object, size int64, of sums) (bool, error) {
	if o.Key == "" || o.Size != size {
		return false, nil
	}
	if strings.Trim(o.ETag, `"`) == of.md5 {
		return true, nil
	}
	told, err := b.client.StatObject(ctx, b.name, o.Key, minio.StatObjectOptions{})
	if err != nil {
		return false, b.why("look at "+o.Key, err)
	}
	return told.UserMetadata[sumKey] == of.sha256, nil
}

// Pick selects the runs to pull.
type Pick struct {
	Newest   int  // maximum number of runs; 0: all
	LastGood bool // only the last good run, if there is one
}

// Pull copies runs and the name of the last good one from the bucket into a folder.
func (b *Bucket) Pull(ctx context.Context, dir string, pick Pick) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("pull: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("pull: %w", err)
	}
	defer root.Close() //nolint:errcheck // what was written was closed
	const most = 4 << 10
	good, err := b.text(ctx, Good, most)
	if err != nil {
		return err
	}
	begin := ""
	if pick.LastGood {
		run := path.Base(strings.TrimSpace(good))
		if !runs.Identifier(run) {
			b.say(fmt.Sprintf("pull: %s has no good run yet", b))
			return nil
		}
		begin = run + "/"
	}
	runList, err := b.list(ctx, begin)
	if err != nil {
		return err
	}
	for _, run := range newest(runList, pick.Newest) {
		var files []string
		for file := range runList[run] {
			files = append(files, file)
		}
		err := b.all(ctx, "pull", run, files, func(ctx context.Context, file string) (bool, error) {
			return b.fetch(ctx, root, runList[run][file])
		})
		if err != nil {
			return err
		}
	}
	if good == "" {
		return nil
	}
	if err := root.WriteFile(Good, []byte(good), 0o644); err != nil {
		return fmt.Errorf("pull: %w", err)
	}
	return nil
}

// newest returns the complete runs by the time of their completion; the newest last.
func newest(runs map[string]map[string]object, n int) []string {
	var names []string
	for run, files := range runs {
		if files[record.RunFile].Key != "" {
			names = append(names, run)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(runs[a][record.RunFile].LastModified.Compare(
			runs[b][record.RunFile].LastModified), strings.Compare(a, b))
	})
	if n > 0 && len(names) > n {
		names = names[len(names)-n:]
	}
	return names
}

// fetch copies an object to its file, unless the file has the object's modification time, as after
// a pull, or its checksum.
func (b *Bucket) fetch(ctx context.Context, root *os.Root, o object) (bool, error) {
	name := filepath.FromSlash(strings.TrimPrefix(o.Key, b.prefix))
	if is, err := b.here(ctx, root, name, o); is || err != nil {
		return false, err
	}
	if o.Size > maxFile {
		return false, fmt.Errorf("pull %s: the object has %d bytes, more than Prony writes; "+
			"remove the object",
			o.Key, o.Size)
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return false, fmt.Errorf("pull: %w", err)
	}
	beside := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".new")
	err := b.write(ctx, root, beside, o)
	if err == nil {
		err = root.Rename(beside, name)
	}
	if err != nil {
		return false, errors.Join(err, root.RemoveAll(beside))
	}
	return true, nil
}

// here reports whether a file has an object's content.
func (b *Bucket) here(ctx context.Context, root *os.Root, name string, o object) (bool, error) {
	f, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("pull: %w", err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	info, err := f.Stat()
	switch {
	case err != nil:
		return false, fmt.Errorf("pull: %w", err)
	case info.Size() != o.Size:
		return false, nil
	case info.ModTime().Equal(o.LastModified):
		return true, nil
	}
	of, err := sumsOf(f)
	if err != nil {
		return false, fmt.Errorf("pull: %w", err)
	}
	return b.same(ctx, o, info.Size(), of)
}

// write writes an object's content into a file and checks it against the pushed checksum. It sets
// the object's modification time once that identifies the content.
func (b *Bucket) write(ctx context.Context, root *os.Root, name string, o object) error {
	from, told, head, err := b.client.GetObject(ctx, b.name, o.Key, minio.GetObjectOptions{})
	if err != nil {
		return b.why("pull "+o.Key, err)
	}
	defer from.Close() //nolint:errcheck // it was read
	to, err := root.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("pull: %w", err)
	}
	of, err := sumsOf(io.TeeReader(io.LimitReader(from, maxFile), to))
	if err := errors.Join(err, to.Close()); err != nil {
		return b.why("pull "+o.Key, err)
	}
	if want := told.UserMetadata[sumKey]; want != "" && want != of.sha256 {
		return fmt.Errorf("pull %s: the checksum differs from the pushed file; push the run again",
			o.Key)
	}
	// The time has a precision of seconds, so a younger object may still change within it. It is
	// then recognized by its checksum.
	at, err := http.ParseTime(head.Get("Date"))
	if err != nil || at.Sub(o.LastModified) < settled {
		return nil
	}
	return root.Chtimes(name, o.LastModified, o.LastModified)
}
