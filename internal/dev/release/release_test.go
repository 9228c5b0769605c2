package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"prony.example/internal/base/files"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/dev/tidy"
)

// must runs a command, with the machine's own programs on the path, and returns its output.
func must(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// A release is made, its package installed into a root of its own, and used from there. Its manual
// has the text of the program's help.
func TestRelease(t *testing.T) {
	root, err := tidy.Root()
	if err != nil {
		t.Fatal(err)
	}
	testsets.Once(
		t,
		"the release",
		testsets.Needs{
			Files: []string{"cmd", "home", "internal", "load", "record", "stats", "go.mod",
				"go.sum"},
		},
	)
	// What a package contains does not depend on how well it is compressed.
	t.Setenv("DPKG_DEB_COMPRESSOR_TYPE", "gzip")
	t.Setenv("DPKG_DEB_COMPRESSOR_LEVEL", "1")
	dir, system := filepath.Join(t.TempDir(), "dist"), "linux/"+runtime.GOARCH
	var said bytes.Buffer
	args := []string{"-root", root, "-o", dir, "-for", system}
	if err := run(t.Context(), args, &said); err != nil {
		t.Fatalf("%v\n%s", err, &said)
	}
	must(t, dir, "sha256sum", "--check", "--strict", sumsName)
	own := filepath.Join(dir, program("prony", system))
	version := strings.TrimPrefix(strings.Fields(must(t, dir, own, "--version"))[2], "v")
	if want, err := versionOf(own); err != nil || version != want {
		t.Errorf("it says version %q, was built from %q: %v", version, want, err)
	}
	checkBill(t, own)
	checkManual(t, filepath.Join(dir, "share", "man", "man1"), own)

	packages, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) != 1 {
		t.Skipf("no package:\n%s", &said)
	}
	into := t.TempDir()
	must(t, dir, "dpkg-deb", "--extract", packages[0], into)
	installed := filepath.Join(into, "usr", "bin", "prony")
	if got := must(t, into, installed, "--version"); !strings.Contains(got, version) {
		t.Errorf("installed, it says %q, not %q", got, version)
	}
	// The collector is found beside it, without a checkout or a compiler.
	if got := must(t, into, installed, "query", "--help"); !strings.Contains(got, "PROMQL") {
		t.Errorf("query --help: %s", got)
	}
	for _, name := range []string{"man/man1/prony-versus.1", "doc/prony/copyright",
		"bash-completion/completions/prony"} {
		if _, err := os.Stat(filepath.Join(into, "usr", "share", name)); err != nil {
			t.Error(err)
		}
	}
	fields := must(t, into, "dpkg-deb", "--field", packages[0], "Version", "Installed-Size")
	if !strings.Contains(fields, strings.ReplaceAll(version, "-", "~")) ||
		strings.Contains(fields, "Installed-Size: 0") {
		t.Errorf("the package says %q", fields)
	}
}

// checkBill compares a program's bill of materials with Go's build information.
func checkBill(t *testing.T, program string) {
	t.Helper()
	text, err := os.ReadFile(program + billSuffix)
	if err != nil {
		t.Fatal(err)
	}
	var bill struct {
		BOMFormat string
		Metadata  struct {
			Component struct{ Hashes []struct{ Content string } }
		}
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal(text, &bill); err != nil || bill.BOMFormat != "CycloneDX" {
		t.Fatalf("%q, %v", bill.BOMFormat, err)
	}
	sum, err := files.Digest(program)
	if err != nil || len(bill.Metadata.Component.Hashes) != 1 ||
		bill.Metadata.Component.Hashes[0].Content != sum {
		t.Errorf("it is of %+v, the program has %s: %v", bill.Metadata, sum, err)
	}
	said := map[string]string{}
	for _, c := range bill.Components {
		said[c.Name] = c.Version
	}
	linked := 0
	for line := range strings.Lines(must(t, ".", "go", "version", "-m", program)) {
		if words := strings.Fields(line); len(words) > 2 && words[0] == "dep" {
			linked++
			if said[words[1]] != words[2] {
				t.Errorf("it says %s %q, linked is %s", words[1], said[words[1]], words[2])
			}
		}
	}
	if linked < 10 || len(bill.Components) != linked+1 {
		t.Errorf("%d parts of %d modules and the standard library", len(bill.Components), linked)
	}
}

// checkManual compares the manual pages with the program's help.
func checkManual(t *testing.T, manual, program string) {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(manual, "*.1"))
	if err != nil || len(pages) < 40 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		verb := strings.Split(strings.TrimSuffix(filepath.Base(page), ".1"), "-")
		checkPage(t, page, must(t, manual, program, append(verb[1:], "--help")...))
	}
	if strings.Contains(must(t, manual, "go", "version", "-m", program), "md2man") {
		t.Error("prony links the generator of its manual")
	}
}

// checkPage compares a page with the help of its verb.
func checkPage(t *testing.T, page, help string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	got := shown(string(text))
	about, _, _ := strings.Cut(help, "\nUsage:")
	for _, paragraph := range strings.Split(about, "\n\n") {
		if want := strings.Join(strings.Fields(paragraph), " "); !strings.Contains(got, want) {
			t.Errorf("%s lacks %q", page, want)
		}
	}
	flags := regexp.MustCompile(`(?m)^ +(?:-\w, )?(--[a-z0-9-]+)`)
	for _, flag := range flags.FindAllStringSubmatch(help, -1) {
		if !strings.Contains(got, flag[1]) {
			t.Errorf("%s lacks %s", page, flag[1])
		}
	}
	if !strings.HasPrefix(string(text), ".nh\n.TH \"PRONY") {
		t.Errorf("%s is no page of the manual:\n%.80s", page, text)
	}
}

// shown returns a page approximately as man shows it: without requests and fonts, its words in one
// line.
func shown(page string) string {
	var words []string
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, ".") {
			words = append(words, strings.Fields(line)...)
		}
	}
	return strings.NewReplacer(`\fB`, "", `\fP`, "", `\fI`, "", `\fR`, "", `\fC`, "", `\&`, "",
		`\-`, "-", `\\`, `\`).Replace(strings.Join(words, " "))
}

// Files in a folder that no release has made stay.
func TestForeignFolder(t *testing.T) {
	dir := t.TempDir()
	kept := filepath.Join(dir, "thesis.txt")
	if err := os.WriteFile(kept, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), []string{"-o", dir}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "no release made") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	if err := os.Rename(kept, filepath.Join(dir, sumsName)); err != nil {
		t.Fatal(err)
	}
	if err := empty(dir); err != nil {
		t.Error(err)
	}
}
