package importer

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// TestFolderIsBounded checks on both sides how many other files of a document are read, and how
// many bytes.
func TestFolderIsBounded(t *testing.T) {
	files := fstest.MapFS{"a.json": {Data: []byte(`{"a": 1}`)}, "broken.json": {Data: []byte(`{`)}}
	check := func(name string, loaded, length int, want bool) {
		t.Helper()
		o := &openAPI{files: files, loaded: map[string]any{}, length: length}
		for i := range loaded {
			o.loaded[fmt.Sprint(i)] = nil
		}
		if got := o.load(name); (got != nil) != want {
			t.Errorf("%s after %d files of %d bytes: %v", name, loaded, length, got)
		}
		if again := o.load(name); (again != nil) != want {
			t.Errorf("%s again: %v", name, again)
		}
	}
	check("a.json", 0, 0, true)
	check("./b/../%61.json", 0, 0, true)
	check("a.json", filesMax-1, filesLength, true)
	check("a.json", filesMax, 0, false)
	check("a.json", 0, filesLength+1, false)
	check("none.json", 0, 0, false)
	check("broken.json", 0, 0, false)
	check(".", 0, 0, false) // a folder
	if got := (&openAPI{loaded: map[string]any{}}).load("a.json"); got != nil {
		t.Errorf("without a folder: %v", got)
	}
}

// TestOneLine checks that no text of a file can end a comment: YAML 1.2 ends lines at CR and LF,
// and earlier versions also at NEL, LS and PS.
func TestOneLine(t *testing.T) {
	check := func(text, want string) {
		t.Helper()
		if got := oneLine(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for _, r := range "\x00\t\n\r\x1f\x7f\u0085\u2028\u2029\ufeff" {
		check("a"+string(r)+"b", "a b")
	}
	check(" a  b ", "a b")
	check("a~é日b", "a~é日b")
	check(strings.Repeat("é", 120), strings.Repeat("é", 120))
	check(strings.Repeat("é", 121), strings.Repeat("é", 120)+"…")
}
