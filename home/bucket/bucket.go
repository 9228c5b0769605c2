// Package bucket keeps runs in a bucket of S3's protocol, and brings them back: a file an object,
// RUN/FILE below a prefix.
//
//	b, err := bucket.Open("s3://bench/nightly", os.Getenv, say)
//	err = b.Push(ctx, "results")
//	err = b.Pull(ctx, "results", bucket.Pick{})
//
// A run is taken for one where its head, run.json, is there, and the head comes last, both ways. An
// object whose size and sum are a file's is not sent again. What links this is prony-home.
//
// Non-goals: it removes nothing on either side, makes no bucket, and knows nothing of what a run
// says.
package bucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"prony.example/internal/report/runs"
	"prony.example/record"
)

// Good is the file beside the runs that names the last good one, as the chart's gate keeps it.
const Good = "good"

// The bounds: of objects below the prefix, of a file (what one PUT takes), of transfers at a time,
// and of times that a request is tried.
const (
	maxObjects = 1_000_000
	maxFile    = 5 << 30
	abreast    = 8
	tries      = 4
)

// Bucket is a place in one.
type Bucket struct {
	client       minio.Core
	name, prefix string // the prefix is empty, or ends with a slash
	host         string
	say          func(string)
}

// Open is a place such as s3://bucket/prefix. Who asks, and where, the usual variables of the
// environment say.
func Open(place string, getenv func(string) string, say func(string)) (*Bucket, error) {
	name, prefix, err := Split(place)
	if err != nil {
		return nil, err
	}
	key, secret := getenv("AWS_ACCESS_KEY_ID"), getenv("AWS_SECRET_ACCESS_KEY")
	if key == "" || secret == "" {
		return nil, errors.New("no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	const amazon = "https://s3.amazonaws.com"
	u, err := url.Parse(cmp.Or(getenv("AWS_ENDPOINT_URL_S3"), getenv("AWS_ENDPOINT_URL"), amazon))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		strings.Trim(u.Path, "/")+u.RawQuery != "" { // it is not repeated: it may hold a password
		return nil, errors.New("AWS_ENDPOINT_URL must be an address such as " +
			"https://s3.example.com:9000")
	}
	client, err := minio.New(u.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(key, secret, getenv("AWS_SESSION_TOKEN")),
		Secure: u.Scheme == "https", MaxRetries: tries,
		Region: cmp.Or(getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION")),
	})
	if err != nil {
		return nil, err
	}
	return &Bucket{minio.Core{Client: client}, name, prefix, u.Scheme + "://" + u.Host, say}, nil
}

// Split takes s3://bucket/prefix apart.
func Split(place string) (name, prefix string, err error) {
	rest, ok := strings.CutPrefix(place, "s3://")
	name, prefix, _ = strings.Cut(rest, "/")
	prefix = strings.Trim(prefix, "/")
	if !ok || name == "" || prefix != "" && path.Clean("/"+prefix) != "/"+prefix {
		return "", "", fmt.Errorf("%q is not a location in a bucket: use s3://bucket/prefix", place)
	}
	if prefix != "" {
		prefix += "/"
	}
	return name, prefix, nil
}

// object is a file of a run, as the bucket has it.
type object = minio.ObjectInfo

// split is the run and its file that a key below the prefix stands for. Whoever may write to the
// bucket chooses keys: what prony would not have written is none.
func split(key string) (run, file string, ok bool) {
	run, file, _ = strings.Cut(key, "/")
	return run, file, runs.Identifier(run) && proper(file)
}

// proper says whether a file of a run is called so: by a path that stays within, and no hidden one.
func proper(file string) bool {
	if file == "" || path.Clean("/"+file) != "/"+file || strings.ContainsAny(file, "\\:\x00") {
		return false
	}
	for part := range strings.SplitSeq(file, "/") {
		if strings.HasPrefix(part, ".") {
			return false
		}
	}
	return true
}

// list is what there is of the runs whose names begin so, by run and file.
func (b *Bucket) list(ctx context.Context, begin string) (map[string]map[string]object, error) {
	runs, n := map[string]map[string]object{}, 0
	for info := range b.client.Client.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{
		Prefix: b.prefix + begin, Recursive: true}) {
		if info.Err != nil {
			return nil, b.why("list", info.Err)
		}
		if n++; n > maxObjects {
			return nil, fmt.Errorf("list %s: more than %d objects; choose another prefix",
				b, maxObjects)
		}
		run, file, ok := split(strings.TrimPrefix(info.Key, b.prefix))
		if !ok {
			continue
		}
		if runs[run] == nil {
			runs[run] = map[string]object{}
		}
		runs[run][file] = info
	}
	return runs, ctx.Err()
}

// text is a small object; a missing one is empty.
func (b *Bucket) text(ctx context.Context, key string, most int64) (string, error) {
	from, _, _, err := b.client.GetObject(ctx, b.name, b.prefix+key, minio.GetObjectOptions{})
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return "", nil
	}
	if err != nil {
		return "", b.why("read "+key, err)
	}
	defer from.Close() //nolint:errcheck // it was read
	data, err := io.ReadAll(io.LimitReader(from, most))
	if err != nil {
		return "", b.why("read "+key, err)
	}
	return string(data), nil
}

func (b *Bucket) String() string { return "s3://" + b.name + "/" + b.prefix }

// why says what a failure means, and what to do.
func (b *Bucket) why(verb string, err error) error {
	said := minio.ToErrorResponse(err)
	hint := ""
	var disk *fs.PathError
	switch {
	case errors.As(err, &disk) || errors.Is(err, context.Canceled):
	case said.StatusCode == 0: // the server has said nothing
		hint = "; check AWS_ENDPOINT_URL, and that the server runs at this address"
	case said.Code == minio.NoSuchBucket:
		hint = "; create the bucket, or use another bucket"
	case said.Code == minio.InvalidAccessKeyID || said.Code == "SignatureDoesNotMatch":
		hint = "; check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
	case said.StatusCode == http.StatusForbidden:
		hint = "; the access key needs the permissions ListBucket on the bucket, and GetObject " +
			"and PutObject below the prefix"
	case said.StatusCode == http.StatusMovedPermanently ||
		said.Code == "AuthorizationHeaderMalformed":
		hint = "; check AWS_REGION"
	}
	return fmt.Errorf("%s: %s at %s: %w%s", verb, b, b.host, err, hint)
}

// headLast orders files of a run: the head is what makes it one.
func headLast(a, b string) int {
	switch {
	case a == record.RunFile:
		return 1
	case b == record.RunFile:
		return -1
	}
	return strings.Compare(a, b)
}
