package site

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/format"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/report/history"
	"prony.example/internal/report/runs"
	"prony.example/record"
)

// makeRuns makes many copies of a real run, a day apart, and a shelf of them.
func makeRuns(t *testing.T, many int) *runs.Shelf {
	t.Helper()
	dir := t.TempDir()
	for i := range many {
		run(t, dir, i, 1)
	}
	s, err := runs.Open(dir, runs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run makes the i-th run, with rates multiplied by times.
func run(t *testing.T, dir string, i int, times float64) (id string) {
	t.Helper()
	const source = "../../report/runs/testdata/run"
	at := time.Date(2026, 11, 1, 3, 40, 11, 0, time.UTC).AddDate(0, 0, i)
	id = at.Format("2006-01-02T15-04-05Z")
	head, records, bad, err := record.Read(source)
	if err != nil || len(bad) > 0 {
		t.Fatal(err, bad)
	}
	head.ID = id
	if i == 0 {
		head.Labels = map[string]string{"note": "</script><b>bold</b>"}
	}
	var lines bytes.Buffer
	for k, r := range records {
		r.Run, r.Time = id, at.Add(time.Duration(k)*time.Minute)
		for j := range r.Loads { // no two trials are alike
			scale(&r.Loads[j], times*(1+0.001*float64((7*i+3*k+j)%11)))
		}
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	text, err := json.Marshal(head)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, id)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	save(t, filepath.Join(folder, record.RunFile), text)
	save(t, filepath.Join(folder, record.TrialsFile), lines.Bytes())
	return id
}

func save(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, s *runs.Shelf, to string) Made {
	t.Helper()
	made, err := Write(t.Context(), s, to, Options{Program: "test",
		URL: "https://example.org/bench"})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// document parses the document and the name in a script.
func document(t *testing.T, to, name string, into any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(to, filepath.FromSlash(name+".js")))
	if err != nil {
		t.Fatal(err)
	}
	text, ok := strings.CutPrefix(string(b), fmt.Sprintf("prony.put(%q,", name))
	if !ok {
		t.Fatalf("%s begins with %.40q", name, b)
	}
	if err := json.Unmarshal([]byte(strings.TrimSuffix(text, ");\n")), into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// TestSite checks that a site's documents equal those of shelf, trend and report.
func TestSite(t *testing.T) {
	testsets.Whole(t, "a site of many runs")
	s := makeRuns(t, 60)
	to := filepath.Join(t.TempDir(), "public")
	if made := write(t, s, to); made.Runs != 60 || made.Fresh != 60 || len(made.Left) != 0 {
		t.Fatalf("it made %+v", made)
	}
	list, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var x index
	document(t, to, "data/index", &x)
	all := slices.Clone(x.Runs)
	for i := range x.Parts {
		var part []runs.Entry
		document(t, to, fmt.Sprintf("data/runs-%d", i+1), &part)
		all = append(all, part...)
	}
	if x.Total != 60 || x.Parts != 1 || !reflect.DeepEqual(all, list.Entries) {
		t.Errorf("the parts of the index have %d runs, in %d parts", len(all), x.Parts)
	}
	if len(x.Groups) != 1 {
		t.Fatalf("%d histories of one suite on one machine", len(x.Groups))
	}
	checkTrend(t, s, list, to, x.Groups[0].Key)
	for _, name := range []string{"report.html", "report.json", "run.json", "trials.ndjson",
		"compare-" + list.Entries[8].ID + ".html"} {
		if _, err := os.Stat(filepath.Join(to, "runs", list.Entries[7].ID, name)); err != nil {
			t.Error(err)
		}
	}
	var news feed
	b, err := os.ReadFile(filepath.Join(to, "feed.xml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(b, &news); err != nil || len(news.Channel.Items) != fed {
		t.Fatalf("the feed has %d items: %v", len(news.Channel.Items), err)
	}
	want := "https://example.org/bench/index.html#/run/" + list.Entries[0].ID
	if got := news.Channel.Items[0].Link; got != want {
		t.Errorf("the first item of the feed leads to %s, not %s", got, want)
	}
	want = list.Entries[0].Answer
	if got := news.Channel.Items[0].Title; want == "" || got != want {
		t.Errorf("the first item of the feed is called %s, want %s", got, want)
	}
	first := 0 // what is read before a page is there, with some of the index
	for _, name := range []string{"index.html", "app.js", "app.css", "data/index.js"} {
		info, err := os.Stat(filepath.Join(to, name))
		if err != nil {
			t.Fatal(err)
		}
		first += int(info.Size())
	}
	if first > 200_000 {
		t.Errorf("the first page has %d bytes", first)
	}
}

func checkTrend(t *testing.T, s *runs.Shelf, list runs.Index, to, key string) {
	t.Helper()
	var all [][]history.Series
	for _, e := range list.Entries {
		r, err := s.Read(e.ID)
		if err != nil {
			t.Fatal(err)
		}
		run := history.Run{Head: r.Head, Records: record.Compared(r.Records)}
		study := table.Analyze(run.Records, table.Options{})
		all = append(all, history.Of(run, study, history.Options{}))
	}
	slices.Reverse(all) // the oldest first
	var b bytes.Buffer
	if err := format.JSON(&b, history.Join(all, history.Options{})); err != nil {
		t.Fatal(err)
	}
	var want, got any
	if err := json.Unmarshal(b.Bytes(), &want); err != nil {
		t.Fatal(err)
	}
	document(t, to, "data/trend-"+key, &got)
	if !reflect.DeepEqual(got, want) {
		t.Error("the history is not that of prony trend")
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestAgain checks that only changed runs are written again, and that removed ones are removed.
func TestAgain(t *testing.T) {
	s := makeRuns(t, 4)
	to := filepath.Join(t.TempDir(), "public")
	write(t, s, to)
	histories, err := filepath.Glob(filepath.Join(to, "data", "trend-*.js"))
	if err != nil || len(histories) == 0 {
		t.Fatalf("histories %v, %v", histories, err)
	}
	before := read(t, histories[0])
	if made := write(t, s, to); made.Runs != 4 || made.Fresh != 0 {
		t.Errorf("nothing has changed, and it made %+v", made)
	}
	if !bytes.Equal(before, read(t, histories[0])) {
		t.Error("a history of runs that have not changed is another")
	}
	changed := run(t, s.Dir(), 1, 2)
	if made := write(t, s, to); made.Fresh != 1 {
		t.Errorf("one run has changed, and it made %+v", made)
	}
	got, err := os.ReadFile(filepath.Join(to, "runs", changed, record.TrialsFile))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(s.Dir(), changed, record.TrialsFile))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the records beside the page are not those of the run: %v", err)
	}
	kept := filepath.Join(to, "runs", "somebody-elses")
	if err := os.Mkdir(kept, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(changed); err != nil {
		t.Fatal(err)
	}
	if made := write(t, s, to); made.Runs != 3 {
		t.Errorf("a run is gone, and it made %+v", made)
	}
	if _, err := os.Stat(filepath.Join(to, "runs", changed)); err == nil {
		t.Error("a run that is gone is on the site still")
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error("a folder that is none of the site's was removed")
	}
	if err := os.Remove(filepath.Join(s.Dir(), run(t, s.Dir(), 9, 1), record.RunFile)); err != nil {
		t.Fatal(err)
	}
	save(t, filepath.Join(s.Dir(), run(t, s.Dir(), 8, 1), record.RunFile), []byte("{"))
	if made := write(t, s, to); made.Runs != 3 || len(made.Left) != 1 {
		t.Errorf("one head is damaged, and it made %+v", made)
	}
}

// TestOnlyWhatIsItsOwn checks that a site neither overwrites nor removes files that no site has
// made.
func TestOnlyWhatIsItsOwn(t *testing.T) {
	s := makeRuns(t, 1)
	other := t.TempDir()
	save(t, filepath.Join(other, "index.html"), []byte("<p>mine"))
	for _, to := range []string{other, s.Dir(), filepath.Join(other, "index.html")} {
		if _, err := Write(t.Context(), s, to, Options{}); err == nil ||
			!strings.Contains(err.Error(), "write site") {
			t.Errorf("%s: %v", to, err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(other, "index.html")); string(b) != "<p>mine" {
		t.Errorf("the page of somebody else is %q: %v", b, err)
	}
}

// scale multiplies the responses of a load in its window.
func scale(l *record.Load, by float64) {
	before := l.Done
	l.ThroughputPerS *= by
	l.Done = int64(math.Round(l.ThroughputPerS * float64(l.WindowNs) / 1e9))
	for _, n := range []*int64{&l.Scheduled, &l.Sent, &l.Answered, &l.ResponseTime.Count} {
		*n += l.Done - before
	}
	l.Series = record.Series{}
}
