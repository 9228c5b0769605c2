package record

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzReadRecords requires that every line is either a record or reported.
func FuzzReadRecords(f *testing.F) {
	f.Add([]byte(`{"version":1,"trial":"a","outcome":"measured","loads":[{"hdr":"x"}]}` + "\n"))
	f.Add([]byte(`{"version":1}` + "\n\n" + `{"version":99}` + "\n" + `{"version":1,`))
	f.Add([]byte("null\n[]\n{}\n\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		records, bad, err := readRecords("x", bytes.NewReader(b),
			all)
		lines := bytes.Count(b, []byte("\n"))
		if len(b) > 0 && b[len(b)-1] != '\n' {
			lines++
		}
		if err == nil && len(records)+len(bad) != lines {
			t.Errorf("%d records and %d that are none of %d lines, %v", len(records), len(bad),
				lines, err)
		}
	})
}

// A power failure can leave any beginning of each file. All complete records must be read, at most
// one line may be invalid, and an unreadable folder must be reported with the reason.
func TestEveryTornRun(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(dir, Run{ID: "r", Suite: "s"})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b", "c"} {
		if err := w.Append(&Record{Trial: id, Outcome: Measured}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	head, trials := filepath.Join(dir, RunFile), filepath.Join(dir, TrialsFile)
	whole, err := os.ReadFile(trials)
	if err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if n%97 > 0 && n > 2 && !bytes.Contains(whole[n-2:min(n+2, len(whole))], []byte("\n")) {
			continue // positions within a line are equivalent
		}
		if err := os.WriteFile(trials, whole[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		_, records, bad, err := ReadUnchecked(dir)
		ends := bytes.Count(whole[:n], []byte("\n"))
		torn := n > 0 && whole[n-1] != '\n'
		if whole[n] == '\n' { // a complete record without its line end
			ends, torn = ends+1, false
		}
		if err != nil || len(records) != ends || (len(bad) == 1) != torn || len(bad) > 1 {
			t.Fatalf("%d bytes: %d records, want %d; bad %v, error %v", n, len(records), ends, bad,
				err)
		}
		if torn && !strings.Contains(bad[0].Error(), "trials.ndjson:") {
			t.Errorf("the torn line is told as %v", bad[0])
		}
	}
	text, err := os.ReadFile(head)
	if err != nil {
		t.Fatal(err)
	}
	for n := range text[:len(text)-2] { // without the last bracket
		if err := os.WriteFile(head, text[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := Read(dir); err == nil || !strings.Contains(err.Error(), RunFile) {
			t.Fatalf("%d bytes of the head: error %v", n, err)
		}
	}
}
