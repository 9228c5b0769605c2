package record

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// progressIn returns the numbers and texts of a run's progress; a torn line has number 0.
func progressIn(t *testing.T, dir string) (numbers []int64, texts []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, ProgressFile))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var p Progress
		if json.Unmarshal([]byte(line), &p) != nil {
			p = Progress{}
		}
		numbers, texts = append(numbers, p.Seq), append(texts, p.Text)
	}
	return numbers, texts
}

// follow opens a run's progress, writes lines with these texts, and closes it.
func follow(t *testing.T, dir string, texts ...string) {
	t.Helper()
	l, err := FollowUp(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		if err := l.Append(Progress{Kind: Says, Text: text}); err != nil {
			t.Error(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestProgressGoesOn checks that a resumed run continues the numbers of its lines, also after a
// line that a killed writer left incomplete.
func TestProgressGoesOn(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, RunFile), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	check := func(wantNumbers []int64, wantTexts ...string) {
		t.Helper()
		numbers, texts := progressIn(t, dir)
		if !slices.Equal(numbers, wantNumbers) || !slices.Equal(texts, wantTexts) {
			t.Errorf("lines %d with texts %q, want %d, %q", numbers, texts, wantNumbers, wantTexts)
		}
	}
	follow(t, dir, "a", "b")
	check([]int64{1, 2}, "a", "b")
	follow(t, dir, "c")
	check([]int64{1, 2, 3}, "a", "b", "c")
	f, err := os.OpenFile(filepath.Join(dir, ProgressFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(`{"seq":4`)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	follow(t, dir, "e")
	check([]int64{1, 2, 3, 0, 5}, "a", "b", "c", "", "e")
}

// TestProgressIsBounded checks that long texts are cut between characters, and that ticks, but no
// other lines, are omitted when the file is full.
func TestProgressIsBounded(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, RunFile), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", progressText-1)
	follow(t, dir, long+"é", long+"yz")
	if _, texts := progressIn(t, dir); !slices.Equal(texts, []string{long, long + "y"}) {
		t.Errorf("texts of %d and %d bytes", len(texts[0]), len(texts[1]))
	}
	l, err := FollowUp(dir)
	if err != nil {
		t.Fatal(err)
	}
	l.size = progressMost
	for _, kind := range []string{Pulses, Pulses, Says} {
		if err := l.Append(Progress{Kind: kind, Text: kind}); err != nil {
			t.Error(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	numbers, texts := progressIn(t, dir)
	if !slices.Equal(numbers, []int64{1, 2, 3, 4}) || texts[2] != Pulses || texts[3] != Says {
		t.Errorf("lines %d, the last ones %q", numbers, texts[2:])
	}
}

// TestProgressWithoutRun checks that the progress of a run without a head is removed, and that a
// link is not followed.
func TestProgressWithoutRun(t *testing.T) {
	dir := t.TempDir()
	follow(t, dir, "a")
	name := filepath.Join(dir, ProgressFile)
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file of a run without a head: %v", err)
	}
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), name); err != nil {
		t.Fatal(err)
	}
	if _, err := FollowUp(dir); err == nil || err.Error() != name+" is not a regular file" {
		t.Errorf("a link: %v", err)
	}
}

// TestStopReason checks that a reason is one printable line, that it is read once, and its bound.
func TestStopReason(t *testing.T) {
	dir := t.TempDir()
	check := func(text, want string) {
		t.Helper()
		name := filepath.Join(dir, StopFile)
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := StopReason(dir); got != want {
			t.Errorf("%.20q: %q, want %q", text, got, want)
		}
		if _, err := os.Lstat(name); want != "" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%.20q: the file stays", text)
		}
	}
	if got := StopReason(dir); got != "" {
		t.Errorf("no file: %q", got)
	}
	check("  the fan\nis\x1b[31m loud\xff ", "the fan is [31m loud")
	check(strings.Repeat("x", stopMost), strings.Repeat("x", stopMost))
	check(strings.Repeat("x", stopMost+1), "")
}

// TestRemark checks that notes are added to a head, and that a run without a head gets none.
func TestRemark(t *testing.T) {
	dir := t.TempDir()
	if err := Remark(dir, "early"); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, RunFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a head where there was none: %v", err)
	}
	w, err := Create(dir, Run{ID: "r", Suite: "s", Notes: []string{"first"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), Remark(dir, "second")); err != nil {
		t.Fatal(err)
	}
	head, _, _, err := ReadUnchecked(dir)
	if err != nil || !slices.Equal(head.Notes, []string{"first", "second"}) {
		t.Errorf("notes %q, %v", head.Notes, err)
	}
	if err := os.WriteFile(filepath.Join(dir, RunFile), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Remark(dir, "third"); err == nil {
		t.Error("a torn head gets a note")
	}
}
