package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/dev/tidy"
)

// broken are targets that break a contract in one way each, with patterns of the lines in which
// verify must report it; sound targets have none.
var broken = map[string][]string{
	"go-hello/sound": nil, "go-compute/sound": nil,
	"go-compute/body": {`GET /fibonacci: the body differs at byte 14: ` +
		`got "{\\"fibonacci\\":514229}", want "{\\"fibonacci\\":832040}"`},
	"go-compute/status": {`GET /data: status 201, want 200; ` +
		`the body begins with "{\\"data\\":\[.*"`},
	"go-compute/route": {
		`GET /fibonacci: status 404, want 200; the body begins with ""`},
	"go-compute/chunks": {`GET /data: chunked, want Content-Length`},
	"go-compute/close": {`GET /data: the service closed the connection after the response, ` +
		`want keep-alive`},
	"go-compute/gzip": {`GET /data: with the headers of a browser, over another connection: ` +
		`Content-Encoding gzip, want none`,
		`GET /data: with the headers of a browser, over another connection: the body ` +
			`differs at byte 1: .*`},
	"go-compute/remembered": {
		`GET /concat: two responses have the same body, want a new random body for each request`},
	"go-compute/stocked": {
		`GET /concat: two responses have the same body, want a new random body for each request`},
	"go-compute/counted": {
		`GET /concat: two bodies have \d{5} of 10013 equal bytes, want a new random body for ` +
			`each request`},
	// The key whose value all get is right, and some are by chance.
	"go-hello/constant": {wrongKey("31415", ""), wrongKey("50000", ""), wrongKey("7", ""),
		wrongKey("9", ""), wrongKey("4711", ""), drawnKey("")},
	"go-hello/golden": {drawnKey("")},
	"go-hello/agent": {wrongKey("31415", ""), wrongKey("50000", ""), wrongKey("7", ""),
		wrongKey("9", ""), wrongKey("4711", ""), drawnKey("")},
	"go-hello/bare": {wrongKey("31415", anyClient), wrongKey("50000", anyClient),
		wrongKey("7", anyClient), drawnKey(anyClient)},
	"go-hello/connection": {wrongKey("31415", anyClient), wrongKey("50000", anyClient),
		wrongKey("7", anyClient), drawnKey(anyClient)},
	"go-hello/echo":  {wrongKey("1", aProxy), wrongKey(`\d+`, aProxy), drawnKey(aProxy)},
	"go-hello/order": {wrongKey("50000", aProxy), drawnKey(aProxy)},
	"go-hello/etag": {`GET /hello/virtual\?key=1: ` + aProxy + `status 304, want 200; .*`,
		`GET /hello/virtual\?key=.*: ` + aProxy + `(status 304, want 200; |no Content-Length).*`},
	"go-hello/log": {`the log has no unrequested lines: \d+ log lines for \d+ requests, .*`},
}

const (
	anyClient = `with the headers of (curl|a browser|a proxy that adds headers), ` +
		`over another connection: `
	aProxy = `with the headers of a proxy that adds headers, over another connection: `
)

// wrongKey matches the report of a key, with any other parameters, that has the value of another.
func wrongKey(key, how string) string {
	return `GET /hello/virtual\?key=` + key + `(&\S*)?: ` + how + `the body (differs|ends) [^(]*`
}

// drawnKey matches the report of keys that are not in the golden responses.
func drawnKey(how string) string {
	return `GET /hello/virtual\?key=\d+: ` + how + `the body .* \(drawn with seed \d+\)`
}

// Every broken service is built and started, and verify finds its error.
func TestVerifyFindsWhatIsBroken(t *testing.T) {
	testsets.Once(t, "every broken service", testsets.Needs{
		Files: []string{"internal/service/testdata/broken"}})
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	stdout, stderr, exit := really("verify", "--root", brokenCatalog(t))
	if exit != cli.Invalid {
		t.Errorf("exit %d, want %d\n%s", exit, cli.Invalid, stderr)
	}
	found, verified := map[string][]string{}, map[string]bool{}
	var failures []string
	for line := range strings.Lines(stdout) {
		line = strings.TrimSpace(line)
		if failure, ok := strings.CutPrefix(line, "FAIL  "); ok {
			failures = append(failures, failure)
		} else if target, _, ok := strings.Cut(line, " · "); ok {
			found[target], verified[target], failures = failures, true, nil
		} else {
			t.Errorf("verify says %q", line)
		}
	}
	for name := range verified {
		if _, ok := broken[name]; !ok {
			t.Errorf("%s is not in the table of this test", name)
		}
	}
	for name, want := range broken {
		if !verified[name] {
			t.Errorf("%s was not verified:\n%s", name, stderr)
		}
		checkFound(t, name, found[name], want)
	}
}

// checkFound requires each difference to match a pattern, and each pattern to match one.
func checkFound(t *testing.T, name string, got, want []string) {
	t.Helper()
	matches := func(pattern, line string) bool {
		return regexp.MustCompile(`^(?:` + pattern + `)$`).MatchString(line)
	}
	for _, pattern := range want {
		if !slices.ContainsFunc(got, func(line string) bool { return matches(pattern, line) }) {
			t.Errorf("%s: no difference is %s\n%s", name, pattern, strings.Join(got, "\n"))
		}
	}
	for _, line := range got {
		if !slices.ContainsFunc(want, func(pattern string) bool { return matches(pattern, line) }) {
			t.Errorf("%s: %s", name, line)
		}
	}
}

// brokenCatalog is a checkout with exactly the broken services of the table.
func brokenCatalog(t *testing.T) string {
	t.Helper()
	root, err := tidy.Root()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(root, "internal", "service", "testdata", "broken")
	dir := checkout(t)
	if err := os.Remove(filepath.Join(dir, "services")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(folder, filepath.Join(dir, "services")); err != nil {
		t.Fatal(err)
	}
	return dir
}
