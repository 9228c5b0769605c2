package bucket

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
)

// place returns a place in a bucket of a real server, with its messages.
func place(t *testing.T, env map[string]string, at string) (*Bucket, *[]string) {
	t.Helper()
	var said []string
	b, err := Open(at, func(key string) string { return env[key] },
		func(line string) { said = append(said, line) })
	if err != nil {
		t.Fatal(err)
	}
	return b, &said
}

// server starts a real server with the bucket bench.
func server(t *testing.T, args ...string) (env map[string]string, dir string) {
	t.Helper()
	testsets.Long(t, "a real server of S3's protocol", testsets.Needs{})
	env, dir = testsets.S3(t, args...)
	if err := os.Mkdir(filepath.Join(dir, "bench"), 0o755); err != nil {
		t.Fatal(err)
	}
	return env, dir
}

// put writes a run's files.
func put(t *testing.T, dir, run string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, run, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// tree returns all files below a folder.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var text []byte
			text, err = os.ReadFile(filepath.Join(dir, name))
			files[name] = string(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func want(t *testing.T, got, want map[string]string) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("%q, want %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

var one = map[string]string{"run.json": "{}", "trials.ndjson": "{}\n", "logs/b1.log": "said",
	"series/empty.json": ""}

// Pushed runs come back byte for byte. Files that exist are not sent or fetched again, changed ones
// are, on either side. This also holds if ETags are not checksums of the content.
func TestPushPull(t *testing.T) {
	for _, args := range [][]string{nil, {"--data-integrity-etag"}} {
		t.Run(fmt.Sprint(args), func(t *testing.T) {
			env, _ := server(t, args...)
			b, said := place(t, env, "s3://bench/some/where")
			from, to := t.TempDir(), t.TempDir()
			put(t, from, "r1", one)
			put(t, from, "r2", map[string]string{"run.json": "{2}"})
			put(t, from, "noRun", map[string]string{"x": "x"})
			put(t, from, "r1", map[string]string{".hidden": "x"})
			put(t, from, "", map[string]string{"good": "/results/r1\n"})
			step := func(does func() error, lines ...string) {
				t.Helper()
				*said = nil
				if err := does(); err != nil {
					t.Fatal(err)
				}
				if got := strings.Join(*said, "; "); got != strings.Join(lines, "; ") {
					t.Errorf("it says %q, want %q", got, lines)
				}
			}
			push := func() error { return b.Push(t.Context(), from) }
			pull := func() error { return b.Pull(t.Context(), to, Pick{}) }
			step(push, "push r1: 4 files, 0 were there", "push r2: 1 files, 0 were there")
			step(push, "push r1: 0 files, 4 were there", "push r2: 0 files, 1 were there")
			step(pull, "pull r1: 4 files, 0 were there", "pull r2: 1 files, 0 were there")
			all := map[string]string{"r2/run.json": "{2}", "good": "/results/r1\n"}
			for name, text := range one {
				all["r1/"+name] = text
			}
			want(t, tree(t, to), all)
			step(pull, "pull r1: 0 files, 4 were there", "pull r2: 0 files, 1 were there")

			// Of the same size: detected by its checksum, on either side.
			put(t, from, "r1", map[string]string{"trials.ndjson": "{}2"})
			step(push, "push r1: 1 files, 3 were there", "push r2: 0 files, 1 were there")
			put(t, to, "r1", map[string]string{"logs/b1.log": "lost", "series/empty.json": ""})
			step(pull, "pull r1: 2 files, 2 were there", "pull r2: 0 files, 1 were there")
			all["r1/trials.ndjson"] = "{}2"
			want(t, tree(t, to), all)
		})
	}
}

// An incompletely pushed run is not a run, because its head comes last.
func TestHalf(t *testing.T) {
	env, _ := server(t)
	b, said := place(t, env, "s3://bench")
	from, to := t.TempDir(), t.TempDir()
	put(t, from, "half", one)
	put(t, from, "whole", one)
	for i := range 3 * abreast { // the first have been sent before the last are opened
		put(t, from, "half", map[string]string{fmt.Sprint("a", i): "x"})
	}
	// A file that is too large for an object ends the push before the head.
	f, err := os.Create(filepath.Join(from, "half", "zzz"))
	if err == nil {
		err = f.Truncate(maxFile + 1)
		f.Close() //nolint:errcheck // a sparse file
	}
	if err != nil {
		t.Fatal(err)
	}
	err = b.Push(t.Context(), from)
	if err == nil || !strings.Contains(err.Error(), "push half/zzz: it has 5368709121 bytes") {
		t.Fatalf("the push ended with %v", err)
	}
	if err := b.Push(t.Context(), filepath.Join(from, "whole")); err != nil {
		t.Fatal(err)
	}
	runs, err := b.list(t.Context(), "")
	if err != nil || runs["half"]["run.json"].Key != "" || len(runs["half"]) == 0 {
		t.Fatalf("%v: the bucket has %v", err, runs["half"])
	}
	if err := b.Pull(t.Context(), to, Pick{}); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(to); len(entries) != 1 || entries[0].Name() != "whole" {
		t.Errorf("pulled %v; said %q", entries, *said)
	}
}

// For settled files that were pulled, time and size suffice.
func TestSettled(t *testing.T) {
	env, _ := server(t)
	b, _ := place(t, env, "s3://bench")
	from, to := t.TempDir(), t.TempDir()
	put(t, from, "r", one)
	log := filepath.Join(to, "r/logs/b1.log")
	pulled := func() time.Time {
		t.Helper()
		if err := b.Pull(t.Context(), to, Pick{}); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(log)
		if err != nil {
			t.Fatal(err)
		}
		return info.ModTime()
	}
	if err := b.Push(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	if at := pulled(); at.Nanosecond() == 0 {
		t.Errorf("it is of %s, when it may still change", at)
	}
	time.Sleep(settled + time.Second)
	if err := os.Remove(log); err != nil {
		t.Fatal(err)
	}
	at := pulled()
	put(t, to, "r", map[string]string{"logs/b1.log": "SAID"})
	if err := os.Chtimes(log, at, at); err != nil {
		t.Fatal(err)
	}
	pulled()
	if text, _ := os.ReadFile(log); at.Nanosecond() != 0 || string(text) != "SAID" {
		t.Errorf("what is of %s was read again", at)
	}
}

// TestPick pulls the newest run, and the last good one.
func TestPick(t *testing.T) {
	env, _ := server(t)
	b, _ := place(t, env, "s3://bench/n")
	from := t.TempDir()
	pulled := func(pick Pick) string {
		t.Helper()
		to := t.TempDir()
		if err := b.Pull(t.Context(), to, pick); err != nil {
			t.Fatal(err)
		}
		return strings.Join(slices.Sorted(maps.Keys(tree(t, to))), " ")
	}
	if got := pulled(Pick{LastGood: true}); got != "" {
		t.Errorf("of an empty bucket: %s", got)
	}
	for _, run := range []string{"c", "a", "b"} {
		put(t, from, run, map[string]string{"run.json": run})
		if err := b.Push(t.Context(), filepath.Join(from, run)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1100 * time.Millisecond) // the server's times have a precision of seconds
	}
	if got := pulled(Pick{Newest: 2}); got != "a/run.json b/run.json" {
		t.Errorf("the newest: %s", got)
	}
	put(t, from, "", map[string]string{"good": "/elsewhere/c\n"})
	if err := b.Push(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	if got := pulled(Pick{LastGood: true}); got != "c/run.json good" {
		t.Errorf("the last good one: %s", got)
	}
}

// Content that differs from the pushed one is reported and not stored.
func TestDamaged(t *testing.T) {
	env, dir := server(t)
	b, _ := place(t, env, "s3://bench")
	from, to := t.TempDir(), t.TempDir()
	put(t, from, "r", one)
	if err := b.Push(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "bench"), "r", map[string]string{"logs/b1.log": "sAid"})
	err := b.Pull(t.Context(), to, Pick{})
	if err == nil || !strings.Contains(err.Error(), "pull r/logs/b1.log: the checksum differs") {
		t.Errorf("it says %v", err)
	}
	for name := range tree(t, to) {
		if strings.Contains(name, "b1.log") || strings.HasSuffix(name, "run.json") {
			t.Errorf("there is %s", name)
		}
	}
}

// Errors have a hint and no secret.
func TestWrong(t *testing.T) {
	env, _ := server(t)
	from := t.TempDir()
	put(t, from, "r", one)
	out, err := exec.Command(testsets.Tool(t, testsets.Versity), "admin", "--access",
		env["AWS_ACCESS_KEY_ID"], "--secret", env["AWS_SECRET_ACCESS_KEY"], "--region",
		env["AWS_REGION"], "--endpoint-url", env["AWS_ENDPOINT_URL"], "create-user", "--access",
		"stranger", "--secret", "strange-secret", "--role", "user").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, row := range []struct{ at, set, want string }{
		{at: "s3://none", want: "create the bucket, or use another bucket"},
		{at: "s3://bench", set: "AWS_SECRET_ACCESS_KEY=another-secret",
			want: "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"},
		{at: "s3://bench", set: "AWS_ACCESS_KEY_ID=nobody",
			want: "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"},
		{at: "s3://bench", set: "AWS_ACCESS_KEY_ID=stranger AWS_SECRET_ACCESS_KEY=strange-secret",
			want: "the access key needs the permissions ListBucket on the bucket"},
		{at: "s3://bench", set: "AWS_REGION=us-other-1", want: "check AWS_REGION"},
		{at: "s3://bench", set: "AWS_ENDPOINT_URL=http://127.0.0.1:1",
			want: "connection refused; check AWS_ENDPOINT_URL"},
	} {
		with := maps.Clone(env)
		for pair := range strings.FieldsSeq(row.set) {
			key, value, _ := strings.Cut(pair, "=")
			with[key] = value
		}
		b, _ := place(t, with, row.at)
		for verb, err := range map[string]error{"push": b.Push(t.Context(), from),
			"pull": b.Pull(t.Context(), t.TempDir(), Pick{})} {
			if err == nil || !strings.Contains(err.Error(), row.want) ||
				strings.Contains(err.Error(), with["AWS_SECRET_ACCESS_KEY"]) {
				t.Errorf("%s %s with %s: %v; want %s", verb, row.at, row.set, err, row.want)
			}
		}
	}
}
