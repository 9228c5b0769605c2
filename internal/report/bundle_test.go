package report

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/server/app"
)

// bundlePatience bounds the build; npm waits long for a registry that does not respond.
const bundlePatience = 3 * time.Minute

// unreachable matches npm's messages if it cannot download its packages.
var unreachable = regexp.MustCompile(`ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|` +
	`ENETUNREACH|ENOTCACHED|E40[134]\b|E50\d\b|ERR_SOCKET`)

// TestBundleIsBuilt checks that the committed bundles, of the page and of the app, equal the build
// of web/, byte for byte.
func TestBundleIsBuilt(t *testing.T) {
	testsets.Once(t, "web/ is built anew", testsets.Needs{Files: []string{"web"}})
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("no npm on PATH: install Node to check that the bundle is what web/ builds")
	}
	// The build writes to ../internal/report/page, so the copy stands in the same places.
	root := t.TempDir()
	sources := filepath.Join(root, "web")
	copyTree(t, "../../web", sources)
	if out, err := npmRun(t, npm, sources, "ci", "--ignore-scripts"); err != nil {
		if unreachable.Match(out) {
			t.Skipf("npm has no packages here: %s", out)
		}
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	for _, step := range []string{"check", "build"} {
		if out, err := npmRun(t, npm, sources, "run", step); err != nil {
			t.Fatalf("npm run %s: %v\n%s", step, err, out)
		}
	}
	committed := map[string][]byte{"internal/report/page/page.js": []byte(pageJS),
		"internal/report/page/page.css": []byte(pageCSS)}
	for _, name := range []string{app.Script, app.Style} {
		committed["internal/server/app/app/"+name] = app.File(name)
	}
	for name, committed := range committed {
		built, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(built, committed) {
			t.Errorf("%s is not what web/ builds: run npm ci && npm run build in web/", name)
		}
	}
}

func npmRun(t *testing.T, npm, dir string, args ...string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bundlePatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, npm, args...)
	cmd.Dir = dir
	return cmd.CombinedOutput()
}

// copyTree copies a folder without npm's files.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		source, target := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		if e.Name() == "node_modules" {
			continue
		}
		if e.IsDir() {
			copyTree(t, source, target)
			continue
		}
		data, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(target, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
