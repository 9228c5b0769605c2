package report

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/format"
	"prony.example/record"
)

var update = flag.Bool("update", false, "bless what is printed as testdata")

// made is the fixture, made once for all tests.
var made = sync.OnceValue(fixture)

func check(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(want, got) {
		return
	}
	_ = os.WriteFile(file+".got", got, 0o644)
	t.Errorf("%s differs from %s.got at line %d (bless with -update)", file, file,
		firstDifference(string(want), string(got)))
}

func firstDifference(a, b string) int {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range as {
		if i >= len(bs) || as[i] != bs[i] {
			return i + 1
		}
	}
	return len(as) + 1
}

func TestText(t *testing.T) {
	for name, o := range map[string]TextOptions{
		"text-wide.txt":   {},
		"text-132.txt":    {Width: 132},
		"text-80.txt":     {Width: 80},
		"text-colour.txt": {Width: 132, Color: true},
		"text-brief.txt":  {Brief: "prony report RUN --why"},
	} {
		var b bytes.Buffer
		if err := Text(&b, sheetOf(made(), fixtureOptions()), o); err != nil {
			t.Fatal(err)
		}
		shown := format.Visible(b.String())
		check(t, name, []byte(shown))
		for i, line := range strings.Split(shown, "\n") {
			if w := format.Columns(line); w > cmp.Or(o.Width, format.Width) {
				t.Errorf("%s:%d is %d columns wide", name, i+1, w)
			}
		}
	}
}

// TestTextOfFew checks that a run without a baseline and a run without records still print.
func TestTextOfFew(t *testing.T) {
	for name, records := range map[string][]record.Record{
		"text-one.txt":  made()[:1],
		"text-none.txt": nil,
	} {
		var b bytes.Buffer
		err := Text(&b, sheetOf(records, table.Options{}), TextOptions{Width: 100})
		if err != nil {
			t.Fatal(err)
		}
		check(t, name, b.Bytes())
	}
}

// sample returns a small part of the run: two targets, two blocks, a failed trial.
func sample() []record.Record {
	var out []record.Record
	for _, r := range made() {
		name := r.Target.Name
		if r.Block <= 2 && (name == "go-nethttp" || name == "node-express") ||
			r.Block == 1 && name == "php-swoole" {
			out = append(out, r)
		}
	}
	return out
}

func TestMarkdown(t *testing.T) {
	study := analyze(made(), fixtureOptions())
	for name, o := range map[string]MarkdownOptions{
		"markdown.md": {Method: MethodLine(study, "docs/method.md")},
		"readme.md":   {Essential: true, Fold: true, Method: MethodLine(study, "docs/method.md")},
		"narrow.md":   {Columns: []string{"half/p99", "peak/ratio", "peak/throughput"}, Fold: true},
	} {
		var b bytes.Buffer
		if err := Markdown(&b, study.Sheet(), o); err != nil {
			t.Fatal(err)
		}
		check(t, name, b.Bytes())
		// Every mark in the table has its footnote, and every footnote its mark.
		above, below, _ := strings.Cut(b.String(), "\n\nLoads: ")
		for n := 1; n < 20; n++ {
			said := strings.Contains(below, "\n"+format.Mark(n)+" ") ||
				strings.Contains(below, "\n- "+format.Mark(n)+" ")
			if said != strings.Contains(above, format.Mark(n)) {
				t.Errorf("%s: footnote %d is said %v, and marked otherwise", name, n, said)
			}
		}
	}
}

// TestMarkdownNotes checks that notes on response times are left out with the columns of response
// times.
func TestMarkdownNotes(t *testing.T) {
	peak := table.Column{Label: "req/s", Unit: "1/s"}
	half := table.Column{Label: "p99", Unit: "ns", Role: table.RoleRatio}
	for _, kind := range []table.NoteKind{table.NoteStallsInSlices, table.NoteStallsInWindows,
		table.NoteStallsRemain, table.NoteStallsMissing, table.NoteStallsReason,
		table.NoteDiscards, table.NoteEqualRate} {
		n := table.NoteOf(kind)
		if concerns(n, []table.Column{peak}) || !concerns(n, []table.Column{peak, half}) {
			t.Errorf("kind %d: shown with throughput alone %v, with p99 %v", kind,
				concerns(n, []table.Column{peak}), concerns(n, []table.Column{peak, half}))
		}
	}
}

// TestSVG checks that a picture is XML for any names of targets, has a bar for each target with a
// value, and has the numbers of the table.
func TestSVG(t *testing.T) {
	records := slices.Clone(made())
	for i := range records {
		if records[i].Target.Name == "rust-axum" {
			records[i].Target.Name = "<b> & \"c\""
		}
	}
	var b bytes.Buffer
	if err := SVG(&b, sheetOf(records, fixtureOptions())); err != nil {
		t.Fatal(err)
	}
	check(t, "picture.svg", b.Bytes())
	bars, text := 0, ""
	for d := xml.NewDecoder(&b); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			if slices.Contains(x.Attr, xml.Attr{Name: xml.Name{Local: "class"}, Value: "bar"}) {
				bars++
			}
		case xml.CharData:
			text += string(x)
		}
	}
	if bars != 6 || !strings.Contains(text, `<b> & "c"`) {
		t.Errorf("%d bars, and the texts %q", bars, text)
	}
	if err := SVG(io.Discard, sheetOf(nil, fixtureOptions())); err == nil {
		t.Error("a picture of nothing is made")
	}
	b.Reset()
	none := fixtureOptions()
	none.Baseline = ""
	if err := SVG(&b, sheetOf(records, none)); err != nil {
		t.Fatal(err)
	}
	check(t, "picture-levels.svg", b.Bytes())
}

// TestSVGOfOddTables checks that a long name has room, and that values of 0 are drawn.
func TestSVGOfOddTables(t *testing.T) {
	records := slices.Clone(made())
	long := strings.Repeat("long-長い/", 8) // some letters are two columns wide
	for i := range records {
		if records[i].Target.Name == "rust-axum" {
			records[i].Target.Name = long
		}
	}
	o := fixtureOptions()
	o.Baseline = ""
	sheet := sheetOf(records, o)
	for _, tab := range sheet.Tables {
		for _, row := range tab.Rows {
			for i := range row.Cells {
				row.Cells[i].Value, row.Cells[i].Interval = 0, table.Interval{}
			}
		}
	}
	var b strings.Builder
	if err := SVG(&b, sheet); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "NaN") {
		t.Errorf("a position is no number:\n%s", &b)
	}
	before, _, _ := strings.Cut(b.String(), `" dx="-14"`)
	end, err := strconv.Atoi(before[strings.LastIndex(before, `"`)+1:])
	if columns := format.Columns(long); err != nil || end < 7*columns {
		t.Errorf("names of %d columns end at %d, %v", columns, end, err)
	}
}

func TestMethodLine(t *testing.T) {
	check := func(records []record.Record, link, want string) {
		t.Helper()
		if got := MethodLine(analyze(records, table.Options{}), link); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	const medians = "medians of trials with 95 % intervals"
	check(made(), "docs/method.md", "7 targets × 5 blocks in random order, "+medians+
		", tiers by Holm-corrected paired ratios; [how the numbers are made](docs/method.md).")
	check(made(), "", "7 targets × 5 blocks in random order, "+medians+
		", tiers by Holm-corrected paired ratios.")
	check(made()[:1], "", "1 target × 1 block in random order, one trial each, so no "+
		"intervals.")
	check(nil, "", "")
}

func TestCSV(t *testing.T) {
	var b bytes.Buffer
	if err := CSV(&b, analyze(made(), fixtureOptions())); err != nil {
		t.Fatal(err)
	}
	check(t, "long.csv", b.Bytes())
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	withheld := slices.Index(rows[0], "withheld")
	center := slices.Index(rows[0], "center")
	for i, row := range rows[1:] {
		if (row[center] == "") != (row[withheld] != "") {
			t.Errorf("row %d has neither a number nor a reason, or both: %q", i+2, row)
		}
	}
}

func TestJSON(t *testing.T) {
	var b bytes.Buffer
	o := JSONOptions{Endpoints: map[string]string{"hello": "/hello"}}
	if err := JSON(&b, analyze(sample(), fixtureOptions()), o); err != nil {
		t.Fatal(err)
	}
	check(t, "sample.json", b.Bytes())
	var none bytes.Buffer
	if err := JSON(&none, analyze(nil, table.Options{}), JSONOptions{}); err != nil {
		t.Fatal(err)
	}
	check(t, "none.json", none.Bytes())
}

// TestJSONHasProtocolAndTool checks that each load has its protocol and the generator that made it.
func TestJSONHasProtocolAndTool(t *testing.T) {
	records := sample()[:1]
	records[0].Loads[1].Protocol, records[0].Loads[1].Driver = "HTTPS/2", "wrk 4.1.0"
	var b bytes.Buffer
	if err := JSON(&b, analyze(records, fixtureOptions()), JSONOptions{}); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Results []struct{ Tool, Protocol string }
	}
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(doc.Results); got != "[{prony http/1.1} {wrk https/2}]" {
		t.Errorf("the loads are of %s", got)
	}
}

// TestJSONKeepsTheSeed checks that the document has every field of the original format, with a
// value of the same kind.
func TestJSONKeepsTheSeed(t *testing.T) {
	const seed = `{"version": 1, "timestamp": "2026-02-18T16:35:25Z",
	  "system": {"os": "Darwin", "arch": "arm64", "cpuModel": "Apple M4", "cpuCores": 10,
	    "ramGB": 24, "javaVersion": "openjdk", "description": "Local benchmark"},
	  "tools": {"selected": "wrk"},
	  "results": [{"server": "self", "tool": "wrk", "protocol": "http/1.1",
	    "scenario": "baseline",
	    "config": {"threads": 12, "connections": 100, "duration": "30s", "endpoint": "/"},
	    "metrics": {"requests": 1117484, "duration_us": 10100310, "rps": 110638.58,
	      "avg_latency_us": 885.05, "p50_us": 833, "p90_us": 979, "p99_us": 2331,
	      "max_us": 89174, "errors_connect": 0, "errors_read": 0, "errors_write": 0,
	      "errors_timeout": 0}}]}`
	var b bytes.Buffer
	if err := JSON(&b, analyze(sample(), fixtureOptions()), JSONOptions{}); err != nil {
		t.Fatal(err)
	}
	var want, got map[string]any
	if err := json.Unmarshal([]byte(seed), &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	sameShape(t, "", want, got)
}

// sameShape checks that got has all fields of want, of the same JSON types.
func sameShape(t *testing.T, at string, want, got any) {
	t.Helper()
	if fmt.Sprintf("%T", want) != fmt.Sprintf("%T", got) {
		t.Errorf("%s is a %T, wanted a %T", at, got, want)
		return
	}
	switch w := want.(type) {
	case map[string]any:
		for key, value := range w {
			sameShape(t, at+"."+key, value, got.(map[string]any)[key])
		}
	case []any:
		for i, g := range got.([]any) {
			sameShape(t, fmt.Sprintf("%s[%d]", at, i), w[0], g)
		}
	}
}

func TestUpdate(t *testing.T) {
	const b, e = "<!-- prony:begin hello -->", "<!-- prony:end hello -->"
	for _, row := range []struct{ name, in, want, err string }{
		{"replaced", "a\n" + b + "\nold\n" + e + "\nz\n", "a\n" + b + "\nnew\n" + e + "\nz\n", ""},
		{"empty", b + e, b + "\nnew\n" + e, ""},
		{"other section", b + e + "<!-- prony:begin x -->1<!-- prony:end x -->",
			b + "\nnew\n" + e + "<!-- prony:begin x -->1<!-- prony:end x -->", ""},
		{"no begin", "a\n" + e, "", "begin hello --> is missing"},
		{"no end", b + "\na", "", "end hello --> is missing"},
		{"two begins", b + b + e, "", "begin hello --> occurs 2 times"},
		{"two ends", b + e + e, "", "end hello --> occurs 2 times"},
		{"turned round", e + b, "", "before its begin"},
	} {
		got, err := Update([]byte(row.in), "hello", []byte("\nnew\n"))
		if row.err == "" && err != nil || string(got) != row.want {
			t.Errorf("%s: %q, %v, wanted %q", row.name, got, err, row.want)
		}
		if row.err != "" && (err == nil || !strings.Contains(err.Error(), row.err)) {
			t.Errorf("%s: error %v, wanted %q", row.name, err, row.err)
		}
	}
	// The second update changes nothing: the marks stay.
	once, err := Update([]byte(b+e), "hello", []byte("new"))
	if err != nil {
		t.Fatal(err)
	}
	if twice, err := Update(once, "hello", []byte("new")); err != nil || !bytes.Equal(once, twice) {
		t.Errorf("updating twice gives %q, then %q, %v", once, twice, err)
	}
}

func TestVerdictLine(t *testing.T) {
	plain := func(_, text string) string { return text }
	check := func(n table.Numbers, want string) {
		t.Helper()
		tallies := []table.Tally{{Grade: record.Valid, Trials: 3},
			{Grade: record.Invalid, Trials: 1, Reason: "errors"}}
		if got := verdictLine(n, tallies, plain); got != want {
			t.Errorf("%+v: %q, want %q", n, got, want)
		}
	}
	const rest = "; 4 trials: 1 INVALID (errors)"
	check(table.Numbers{Valid: 1}, "1 of 1 number VALID"+rest)
	check(table.Numbers{Valid: 5, Suspect: 2}, "5 of 7 numbers VALID · 2 SUSPECT"+rest)
	check(table.Numbers{Valid: 5, Suspect: 2, Unknown: 3},
		"5 of 10 numbers VALID · 2 SUSPECT · 3 not known"+rest)
}
