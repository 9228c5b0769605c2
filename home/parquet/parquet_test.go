package parquet

import (
	"bytes"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"prony.example/internal/report/rows"
)

// A value of each kind comes back unchanged, also if it exceeds 53 bits, and null as null.
func TestWrite(t *testing.T) {
	at := time.Date(2026, 11, 21, 3, 40, 11, 250_000, time.UTC)
	rowList := [][]any{
		{"ü\x1b\"", int64(math.MaxInt64), 0.1, true, at},
		{nil, nil, nil, nil, nil},
		{"", int64(math.MinInt64), 5e-324, false, at.Add(time.Second)},
	}
	head := rows.Head{Table: "things", Version: 7, Columns: []rows.Column{
		{Name: "t", Kind: rows.Text}, {Name: "c", Kind: rows.Count}, {Name: "r", Kind: rows.Real},
		{Name: "f", Kind: rows.Flag}, {Name: "i", Kind: rows.Instant}}}
	var text, b bytes.Buffer
	rowAt := func(i int) []any { return rowList[i] }
	if err := rows.Write(&text, head, len(rowList), rowAt); err != nil {
		t.Fatal(err)
	}
	if err := Write(&b, &text); err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if table, _ := f.Lookup("prony.table"); table != "things" {
		t.Errorf("it is of table %q", table)
	}
	type row struct {
		T *string  `parquet:"t,optional"`
		C *int64   `parquet:"c,optional"`
		R *float64 `parquet:"r,optional"`
		F *bool    `parquet:"f,optional"`
		I *int64   `parquet:"i,optional"`
	}
	got, err := parquet.Read[row](bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil || len(got) != 3 {
		t.Fatalf("%d rows, %v", len(got), err)
	}
	for _, i := range []int{0, 2} {
		r, want := got[i], rowList[i]
		if *r.T != want[0] || *r.C != want[1] || *r.R != want[2] || *r.F != want[3] ||
			*r.I != want[4] { // as written: an instant in microseconds
			t.Errorf("row %d is %q %d %g %t %d, want %v", i, *r.T, *r.C, *r.R, *r.F, *r.I, want)
		}
	}
	if *got[0].I != at.UnixMicro() {
		t.Errorf("the instant is %d, want %d", *got[0].I, at.UnixMicro())
	}
	if r := got[1]; r.T != nil || r.C != nil || r.R != nil || r.F != nil || r.I != nil {
		t.Errorf("what is null came back as %+v", r)
	}
}

// Invalid or incomplete input is an error and never a file with fewer rows.
func TestWriteRefuses(t *testing.T) {
	const head = `{"table":"t","version":1,"columns":[{"name":"n","kind":"count"}]}`
	for _, row := range []struct{ text, says string }{
		{"", "read a table's columns: EOF"},
		{"[1]", "read a table's columns"},
		{strings.Replace(head, "count", "colour", 1), `has the unknown kind "colour"`},
		{head + "[1][2", "row 2 of table t: unexpected EOF"},
		{head + "[1,2]", "2 values for 1 columns"},
		{head + `["x"]`, "column n: x is no count"},
		{head + `[1.5]`, "column n: strconv.ParseInt"},
	} {
		if err := Write(io.Discard, strings.NewReader(row.text)); err == nil ||
			!strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want %q", row.text, err, row.says)
		}
	}
}
