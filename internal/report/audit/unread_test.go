package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"prony.example/record"
)

// TestUnreadLinesAreTold checks that unreadable parts of a table are listed by line, with reasons.
func TestUnreadLinesAreTold(t *testing.T) {
	check := func(name, text string, rows int, want ...string) {
		t.Helper()
		d, err := Read(name, text, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := Audit(d)
		var got []string
		for _, u := range r.Unread {
			got = append(got, fmt.Sprintf("%d %t %s: %s", u.Line, u.Partial, u.Table, u.Reason))
		}
		if r.Rows != rows || !slices.Equal(got, want) {
			t.Errorf("%s has %d results and lacks\n  %s\nwant %d and\n  %s", name, r.Rows,
				strings.Join(got, "\n  "), rows, strings.Join(want, "\n  "))
		}
	}
	const head = "server,rps,p99 (ms)\ngo,1001,5\n"
	const bad = "the cell has no number, or a number without a unit: "
	check("a.csv", head+"rust,1002,4\n", 2)
	check("a.csv", head+"node,fast,\n", 1, "3 false a: "+bad+`rps "fast"`)
	check("a.csv", head+"php,-,\n", 1, "3 false a: the row has no value of rps, p99 (ms)")
	check("a.csv", head+"c,900,<1\n", 2, "3 true a: "+bad+`p99 (ms) "<1"`)
	check("a.csv", head+"d,900,n/a\ne,901\n,,\n", 3) // nothing there, and said so
	check("a.csv", head+"java,1,200,7\n", 1,
		"3 false a: the row has 4 cells, but the table has 3 column heads")
	check("a.csv", head+"java,1200,7,,\n", 2)
	check("a.csv", head+"ruby,\"800,1\nperl,700,1\nawk,600,1\n", 1,
		"3 false a: a quote is not closed and hides the text after it, 2 lines")
	check("a.md", "# Speed\n| who | RPS |\n|--|--|\n| a | WIP |\n| b | 7 |\n# More\n"+
		"| who | RPS |\n|--|--|\n| a | none |\n", 1, "4 false Speed: "+bad+`RPS "WIP"`,
		"9 false More: the row has no value of RPS")
	// A transposed table names the column.
	check("a.md", "| | Go | Py |\n|--|--|--|\n| Requests/s | 10 | TOO SLOW |\n", 1,
		`3 false : column "Py": `+bad+`Requests/s "TOO SLOW"`)
	check("a.json", "[{\"name\": \"a\", \"rps\": 5},\n {\"name\": \"b\"}]", 1,
		"2 false results: this object has neither a rate nor a mean latency")
}

// TestUnreadLinesAreCounted checks that text has the first few and the number; if no line could be
// read, it is an error.
func TestUnreadLinesAreCounted(t *testing.T) {
	text := "server,rps\ngo,1001\n" + strings.Repeat("x,soon\n", 7)
	d, err := Read("a.csv", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := Audit(d).Write(&b); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "  could not read 7 lines:\n    a.csv:3: the cell has ") ||
		!strings.Contains(b.String(), "    a.csv:7: the cell has ") ||
		!strings.Contains(b.String(), "\n    and 2 more\n") ||
		strings.Contains(b.String(), "csv:8") {
		t.Errorf("it says\n%s", &b)
	}
	for name, text := range map[string]string{"a.csv": "who,rps\nx,soon\ny,late\n",
		"a.md": "| who | RPS |\n|--|--|\n| x | soon |\n| y | late |\n"} {
		_, err := Read(name, text, nil)
		if err == nil || !strings.Contains(err.Error(), "no line that audit can read\n  line ") ||
			!strings.Contains(err.Error(), `"late"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestContradictionHasItsLine checks that a contradiction has the line of its record, also after a
// line that cannot be read.
func TestContradictionHasItsLine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	w, err := record.Create(dir, record.Run{ID: "x"})
	if err != nil {
		t.Fatal(err)
	}
	err = w.Append(&record.Record{Trial: "b1-01-a", Scenario: "s", Outcome: record.Measured,
		Loads: []record.Load{ownLoad()}})
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, record.TrialsFile)
	line, err := os.ReadFile(name)
	if err == nil {
		err = os.WriteFile(name, append([]byte("{\n"), line...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	got := text(t, dir)
	if !strings.Contains(strings.Join(strings.Fields(got), " "), record.TrialsFile+":2: ") {
		t.Errorf("it does not name line 2:\n%s", got)
	}
}

// TestUnknownColumns checks the error for a column that no file has, with the existing ones.
func TestUnknownColumns(t *testing.T) {
	check := func(want string, columns []string, files ...string) {
		t.Helper()
		cols, err := ParseColumns(columns)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range files {
			_, err := Read("a.csv", text, cols)
			if err != nil && !strings.Contains(err.Error(), "unrecognized format") {
				t.Error(err)
			}
		}
		got := ""
		if err := cols.Unknown(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", columns, got, want)
		}
	}
	const table, other = "Who,Speed,Lat\na,5,7\n", "who,rps\na,5\n"
	check("", nil, table)
	check("", []string{"speed=rate", "LAT=p99:ms"}, table)
	check("", []string{"Speed=rate"}, other, table) // one of the files is enough
	check(`--column: no file has a column "Spede"; known columns are Who, Speed, Lat`,
		[]string{"Spede=rate"}, table)
	check(`--column: no file has a column "x" or "y"; known columns are who, rps`,
		[]string{"x=rate", "y=name"}, other)
	check(`--column: no file has a column "x"; known columns are name, rps, deep`,
		[]string{"x=p50"},
		`[{"name": "a", "rps": 5, "deep": 1}]`)
	check(`--column: no file has a column "x"; the files have no columns`, []string{"x=p50"})
	wide := "rps"
	for i := range 2 * headsMost {
		wide += fmt.Sprintf(",h%d", i)
	}
	check(`--column: no file has a column "x"; known columns are `+
		strings.ReplaceAll(wide[:strings.Index(wide, ",h49")], ",", ", ")+" and more",
		[]string{"x=p50"}, wide+"\n5\n")
}
