package bucket

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	check := func(place, name, prefix string) {
		t.Helper()
		gotName, gotPrefix, err := Split(place)
		if gotName != name || gotPrefix != prefix || (err != nil) != (name == "") {
			t.Errorf("%s: %q, %q, %v; want %q, %q", place, gotName, gotPrefix, err, name, prefix)
		}
	}
	check("s3://bench", "bench", "")
	check("s3://bench/", "bench", "")
	check("s3://bench/a/b/", "bench", "a/b/")
	check("s3://bench/a//b", "", "")
	check("s3://bench/../b", "", "")
	check("s3:///a", "", "")
	check("https://bench/a", "", "")
	check("bench/a", "", "")
}

// Keys of other writers cannot leave the folder, be hidden, or be anything but a file of a run.
func TestKeys(t *testing.T) {
	for key, want := range map[string]bool{
		"r/run.json": true, "2026-11-21T03-40-11Z/logs/b1.log": true,
		"r": false, "r/": false, "/run.json": false, "r/../x": false, "../x": false,
		"r/a/../../x": false, "r//x": false, "r/./x": false, ".ssh/x": false, "r/.git/x": false,
		`r/a\..\x`: false, "r/c:x": false, "r/a\x00": false, "r/a/": false,
	} {
		if _, _, ok := split(key); ok != want {
			t.Errorf("%q is a file of a run: %v, want %v", key, ok, want)
		}
	}
}

// The head of a run comes last, whatever the other names are.
func TestHeadLast(t *testing.T) {
	files := []string{"z/a", "run.json", "trials.ndjson", "a"}
	slices.SortFunc(files, headLast)
	if got := fmt.Sprint(files); got != "[a trials.ndjson z/a run.json]" {
		t.Error(got)
	}
}

// Invalid settings are refused before any request, and errors contain no secret.
func TestOpenRefuses(t *testing.T) {
	for _, row := range []struct{ env, want string }{
		{"", "no credentials: set AWS_ACCESS_KEY_ID"},
		{"AWS_ACCESS_KEY_ID=k", "no credentials"},
		{"AWS_ACCESS_KEY_ID=k AWS_SECRET_ACCESS_KEY=hush AWS_ENDPOINT_URL=s3.example.com",
			"must be an address such as"},
		{"AWS_ACCESS_KEY_ID=k AWS_SECRET_ACCESS_KEY=x AWS_ENDPOINT_URL=http://u:hush@host",
			"must be an address such as"},
		{"AWS_ACCESS_KEY_ID=k AWS_SECRET_ACCESS_KEY=x AWS_ENDPOINT_URL=http://host/path",
			"must be an address such as"},
	} {
		env := map[string]string{}
		for pair := range strings.FieldsSeq(row.env) {
			key, value, _ := strings.Cut(pair, "=")
			env[key] = value
		}
		_, err := Open("s3://b", func(k string) string { return env[k] }, nil)
		if err == nil || !strings.Contains(err.Error(), row.want) ||
			strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v, want %s", row.env, err, row.want)
		}
	}
}
