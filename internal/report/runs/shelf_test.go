package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/record"
)

// put writes a file, with the folders above it.
func put(t *testing.T, text string, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	err := os.MkdirAll(filepath.Dir(name), 0o755)
	if err == nil {
		err = os.WriteFile(name, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// real returns the head and records of a real run, of two targets in two blocks, two loads each.
func real(t *testing.T) (head record.Run, records []byte) {
	t.Helper()
	b, err := os.ReadFile("testdata/run/run.json")
	if err == nil {
		err = json.Unmarshal(b, &head)
	}
	if err == nil {
		records, err = os.ReadFile("testdata/run/trials.ndjson")
	}
	if err != nil {
		t.Fatal(err)
	}
	return head, records
}

// run writes a copy of a real run, with another name and suite.
func run(t *testing.T, dir, id, suite string) {
	t.Helper()
	head, records := real(t)
	old := head.ID
	head.ID, head.Suite = id, suite
	b, err := json.Marshal(head)
	if err != nil {
		t.Fatal(err)
	}
	put(t, string(b), dir, id, record.RunFile)
	records = bytes.ReplaceAll(records, []byte(`"run":"`+old+`"`), []byte(`"run":"`+id+`"`))
	put(t, string(records), dir, id, record.TrialsFile)
}

func open(t *testing.T, dir string, o Options) *Shelf {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func list(t *testing.T, s *Shelf) Index {
	t.Helper()
	x, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func ids(x Index) (out []string) {
	for _, e := range x.Entries {
		out = append(out, e.ID)
	}
	return out
}

const (
	monday  = "2026-11-16T03-00-00Z"
	tuesday = "2026-11-17T03-00-00Z"
)

// TestEntry checks that an entry has the values of the run's report.
func TestEntry(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, monday, "small")
	e, err := open(t, dir, Options{}).Entry(monday)
	if err != nil {
		t.Fatal(err)
	}
	if e.Suite != "small" || e.Blocks != 2 || e.State != Done || e.Machine.Key == "" ||
		e.Time != time.Date(2026, 11, 16, 3, 0, 0, 0, time.UTC) || e.Seconds <= 0 {
		t.Errorf("the entry is %+v", e)
	}
	records, err := os.ReadFile(filepath.Join(dir, monday, "trials.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(records)), "\n")
	var last record.Record
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil ||
		!e.Ended.Equal(last.Time.Add(time.Duration(last.DurationNs))) {
		t.Errorf("it ended %v, its last record is of %v, for %d ns: %v", e.Ended, last.Time,
			last.DurationNs, err)
	}
	if n := e.Trials; n.Planned != 4 || n.Valid+n.Suspect+n.Invalid != 4 || n.Missing != 0 {
		t.Errorf("the trials are %+v", n)
	}
	if !slices.Equal(e.Targets, []string{"go-nethttp", "node-express"}) {
		t.Errorf("the targets are %q", e.Targets)
	}
	r, err := Read(filepath.Join(dir, monday))
	if err != nil {
		t.Fatal(err)
	}
	study := r.Study(r.Options())
	for i, sc := range study.Scenarios {
		got := e.Ranking[i]
		for k, target := range sc.Targets {
			m, _ := target.Metric(sc.Ranking.Load, sc.Ranking.Metric)
			if row := got.Rows[k]; row.Target != target.Name || row.Tier != target.Tier ||
				row.Center == nil || *row.Center != m.Summary.Center || got.Unit != m.Unit {
				t.Errorf("%s: row %d is %+v of %+v; the study has %v", sc.Name, k, row, got,
					m.Summary)
			}
		}
	}
	if sheet := study.Sheet(); e.Numbers != sheet.Numbers {
		t.Errorf("numbers %+v, and the table has %+v", e.Numbers, sheet.Numbers)
	}
}

// TestDamaged checks that damaged or incomplete runs do not hide others, and are listed with a
// reason.
func TestDamaged(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, monday, "small")
	run(t, dir, tuesday, "small")
	head, records := real(t)
	text, err := json.Marshal(head)
	if err != nil {
		t.Fatal(err)
	}
	put(t, "notes", dir, "notes.txt")            // foreign: left alone
	put(t, "x", dir, "elsewhere", "readme.md")   //
	put(t, "{}", dir, ".hidden", record.RunFile) //
	put(t, "{", dir, "torn", record.RunFile)     // told
	put(t, "", dir, "torn", record.TrialsFile)   //
	put(t, string(text), dir, "headonly", record.RunFile)
	put(t, `{"version":99}`, dir, "newer", record.RunFile)
	put(t, "", dir, "newer", record.TrialsFile)
	put(t, string(text), dir, "begun", record.RunFile) // a run that has no trial yet
	put(t, "", dir, "begun", record.TrialsFile)
	put(t, string(text), dir, "half", record.RunFile) // its last record is torn
	put(t, string(records[:len(records)*9/10]), dir, "half", record.TrialsFile)
	x := list(t, open(t, dir, Options{}))
	if got, want := ids(x), []string{"begun", "half", monday, tuesday}; !same(got, want) {
		t.Errorf("runs %q, want %q", got, want)
	}
	var left []string
	for _, l := range x.Left {
		left = append(left, l.ID)
		if strings.Contains(l.Why, dir) || l.Why == "" {
			t.Errorf("%s: %s", l.ID, l.Why)
		}
	}
	if want := []string{"headonly", "newer", "torn"}; !same(left, want) {
		t.Errorf("left out %q, want %q", left, want)
	}
	for _, e := range x.Entries {
		switch e.ID {
		case "half":
			if e.Damaged != 1 || e.Trials.Missing != 1 || e.State != Stopped {
				t.Errorf("a torn record leaves %+v", e)
			}
		case "begun":
			if e.Trials.Missing != 4 || e.State != Stopped || len(e.Targets) != 2 {
				t.Errorf("a run without trials is %+v", e)
			}
		}
	}
}

func same(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// TestIdentifiersAlone checks that every run is below the folder, by its own name, and that no link
// is followed.
func TestIdentifiersAlone(t *testing.T) {
	above := t.TempDir()
	dir := filepath.Join(above, "results")
	run(t, dir, monday, "small")
	run(t, above, "outside", "secret")
	for from, to := range map[string]string{
		"linked":                           filepath.Join(above, "outside"),
		"inner":                            monday,
		"files/" + record.TrialsFile:       filepath.Join(above, "outside", record.TrialsFile),
		"head/" + record.RunFile:           filepath.Join(above, "outside", record.RunFile),
		monday + "/" + record.ProgressFile: filepath.Join(above, "outside", record.RunFile),
		monday + "/" + "labels.json.x":     "/",
	} {
		name := filepath.Join(dir, from)
		err := os.MkdirAll(filepath.Dir(name), 0o755)
		if err == nil {
			err = os.Symlink(to, name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	head, err := os.ReadFile(filepath.Join(above, "outside", record.RunFile))
	if err != nil {
		t.Fatal(err)
	}
	put(t, string(head), dir, "files", record.RunFile)
	put(t, "", dir, "head", record.TrialsFile)
	s := open(t, dir, Options{})
	x := list(t, s)
	if got := ids(x); !slices.Equal(got, []string{monday}) {
		t.Errorf("runs %q", got)
	}
	for _, id := range []string{"", ".", "..", "../outside", "linked", "inner", "head", "/etc",
		"..\\outside", monday + "/", "./" + monday, monday + "/../" + monday, "%2e%2e", "a\x00b",
		strings.Repeat("a", 200), "-rf", filepath.Join(above, "outside")} {
		if p, err := s.Path(id); err == nil || !errors.Is(err, ErrNone) {
			t.Errorf("%q is %s, %v", id, p, err)
		}
		if err := s.Remove(id); err == nil {
			t.Errorf("%q was removed", id)
		}
		if err := s.Label(id, nil); err == nil {
			t.Errorf("%q was labelled", id)
		}
	}
	if _, err := s.Read("files"); err == nil {
		t.Error("records were read through a link")
	}
}

func TestLabels(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, monday, "small")
	s := open(t, dir, Options{})
	before, err := os.ReadFile(filepath.Join(dir, monday, record.RunFile))
	if err != nil {
		t.Fatal(err)
	}
	check := func(good bool, labels map[string]string) {
		t.Helper()
		if err := s.Label(monday, labels); (err == nil) != good {
			t.Errorf("%.80v: %v", labels, err)
		} else if err != nil && !errors.Is(err, ErrLabels) {
			t.Errorf("%.80v: %v is not an ErrLabels", labels, err)
		}
	}
	check(true, map[string]string{"branch": "main", "pull": "17"})
	check(false, map[string]string{"": "x"})
	check(false, map[string]string{"a=b": "x"})
	check(false, map[string]string{"a": "two\nlines"})
	check(false, map[string]string{"a": "\xff"})
	check(false, map[string]string{"a": strings.Repeat("x", maxLabels)})
	x := list(t, s)
	if got := x.Entries[0].Labels; len(got) != 2 || got["branch"] != "main" {
		t.Errorf("labels %v", got)
	}
	r, err := s.Read(monday)
	if err != nil {
		t.Fatal(err)
	}
	if notes := r.Options().Notes; !slices.Contains(notes, "Labels: branch=main, pull=17.") {
		t.Errorf("reports say %q", notes)
	}
	check(true, nil) // takes all away
	if got := list(t, s).Entries[0].Labels; got == nil || len(got) != 0 {
		t.Errorf("labels %v", got)
	}
	after, err := os.ReadFile(filepath.Join(dir, monday, record.RunFile))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the head was changed: %v", err)
	}
}

// TestRemove checks that a run is removed completely, that the targets of its links stay, and that
// one under way is not removed.
func TestRemove(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, monday, "small")
	run(t, dir, tuesday, "small")
	kept := filepath.Join(t.TempDir(), "kept")
	put(t, "x", kept)
	if err := os.Symlink(kept, filepath.Join(dir, monday, "link")); err != nil {
		t.Fatal(err)
	}
	const lab = `{"seq":1,"kind":"begin","pid":17,"processStart":"5"}` + "\n"
	put(t, lab, dir, tuesday, record.ProgressFile)
	s := open(t, dir, Options{Born: func(pid int) string { return fmt.Sprint(pid - 12) }})
	if err := errors.Join(s.Remove(monday)); err != nil {
		t.Error(err)
	}
	if err := s.Remove(tuesday); !errors.Is(err, ErrUnderWay) {
		t.Errorf("a run under way: %v", err)
	}
	if got := ids(list(t, s)); !slices.Equal(got, []string{tuesday}) {
		t.Errorf("runs %q", got)
	}
	names, err := filepath.Glob(filepath.Join(dir, ".removed*"))
	if _, kept := os.Stat(kept); err != nil || len(names) > 0 || kept != nil {
		t.Errorf("left %q, %v; what a link names: %v", names, err, kept)
	}
}

func TestState(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, monday, "small")
	lives := "5"
	s := open(t, dir, Options{Born: func(pid int) string {
		if pid == 17 {
			return lives
		}
		return ""
	}})
	check := func(want, lines string) {
		t.Helper()
		put(t, lines, dir, monday, record.ProgressFile)
		e, err := s.Entry(monday)
		if err != nil || e.State != want {
			t.Errorf("%.90s: %s, %v; want %s", lines, e.State, err, want)
		}
		if lab, err := s.Lab(monday); (lab != nil) != (want == Running) || err != nil {
			t.Errorf("%.90s: lab %v, %v", lines, lab, err)
		}
	}
	const begin = `{"seq":1,"kind":"begin","pid":17,"processStart":"5"}` + "\n"
	const say = `{"seq":2,"kind":"log","text":"begin end"}` + "\n"
	const end = `{"seq":9,"kind":"end","outcome":"done"}` + "\n"
	check(Running, begin)
	check(Running, begin+strings.Repeat(say, 1000))
	check(Running, begin+say+`{"seq":3,"kind":"en`)
	check(Done, begin+say+end)
	check(Running, begin+say+end+begin) // gone on with
	check(Running, begin+say+end+begin+strings.Repeat(say, 1000))
	check(Done, strings.ReplaceAll(begin, "17", "18"))
	check(Done, strings.ReplaceAll(begin, `"5"`, `""`))
	check(Done, "no event\n")
	check(Done, "")
	check(Running, begin+" ")
	lives = "6" // the same number, another process
	if e, err := s.Entry(monday); err != nil || e.State != Done {
		t.Errorf("after the lab's end it is %s, %v", e.State, err)
	}
}

func TestFilter(t *testing.T) {
	e := Entry{ID: monday, Suite: "http", Targets: []string{"java-jdk/virtual", "go-nethttp@base"},
		Labels: map[string]string{"branch": "main"}, Trials: Trials{Valid: 3, Failed: 1},
		Time: time.Date(2026, 11, 16, 3, 0, 0, 0, time.UTC)}
	check := func(want bool, f Filter) {
		t.Helper()
		if f.Wants(e) != want {
			t.Errorf("%+v: %v", f, !want)
		}
	}
	check(true, Filter{})
	check(true, Filter{Suite: "http"})
	check(false, Filter{Suite: "htt"})
	check(true, Filter{Target: "java-jdk"})
	check(true, Filter{Target: "go-nethttp"})
	check(false, Filter{Target: "go"})
	check(true, Filter{Verdict: "failed"})
	check(false, Filter{Verdict: "invalid"})
	check(false, Filter{Verdict: "nonsense"})
	check(true, Filter{Label: "branch"})
	check(true, Filter{Label: "branch=main"})
	check(false, Filter{Label: "branch=next"})
	check(false, Filter{Label: "other"})
	check(true, Filter{From: e.Time, To: e.Time})
	check(false, Filter{From: e.Time.Add(1)})
	check(false, Filter{To: e.Time.Add(-1)})
}

// TestMachine checks that different machines differ, and that an update within a kernel's release
// does not matter.
func TestMachine(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, monday, "small")
	r, err := Read(filepath.Join(dir, monday))
	if err != nil {
		t.Fatal(err)
	}
	was := r.machine().Key
	check := func(equal bool, change func(p *record.Provenance)) {
		t.Helper()
		p := &r.Records[0].Provenance
		for _, rec := range r.Records {
			old := rec.Provenance
			change(&rec.Provenance)
			defer func() { rec.Provenance = old }()
		}
		if (r.machine().Key == was) != equal {
			t.Errorf("%+v: the same machine: %v", *p, !equal)
		}
	}
	check(true, func(p *record.Provenance) { p.Commit = "another" })
	check(true, func(p *record.Provenance) { p.Kernel += "-17" })
	check(false, func(p *record.Provenance) { p.Kernel = "2.4.1" })
	check(false, func(p *record.Provenance) { p.Cores += 2 })
	check(false, func(p *record.Provenance) { p.CPUModel += " II" })
	r.Records[1].Provenance.Cores += 2
	if r.machine().Key == was {
		t.Error("records of two machines are one machine's")
	}
}
