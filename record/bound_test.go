package record

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/dev/testsets"
)

// numbers calls f with every number of a value; it creates missing elements.
func numbers(v reflect.Value, f func(reflect.Value)) {
	switch {
	case v.CanInt() || v.CanFloat():
		f(v)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		numbers(v.Elem(), f)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		numbers(v.Index(0), f)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				numbers(v.Field(i), f)
			}
		}
	}
}

// reread writes a run with these records and reads it again.
func reread(t *testing.T, dir string, text []byte) (records []*Record, bad []*BadRecord) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, TrialsFile), text, 0o644); err != nil {
		t.Fatal(err)
	}
	_, records, bad, err := ReadUnchecked(dir)
	if err != nil {
		t.Fatal(err)
	}
	return records, bad
}

// Records with an impossible number are rejected, for every number of a record.
func TestNoNumberIsBeyondAll(t *testing.T) {
	testsets.Whole(t, "every number of a record")
	dir := t.TempDir()
	w, err := Create(dir, Run{ID: "r", Suite: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	left := func(text []byte) ([]*Record, []*BadRecord) {
		t.Helper()
		return reread(t, dir, text)
	}
	asked := 0
	r := &Record{}
	numbers(reflect.ValueOf(r).Elem(), func(v reflect.Value) {
		for _, x := range []float64{greatest, -greatest, 1e308, greatest / 2, -1} {
			r.Version, r.Run, r.Trial = Version, "r", "t"
			field := v
			if field.CanInt() {
				if x > greatest {
					continue // JSON cannot represent this number
				}
				field.SetInt(int64(x))
			} else {
				field.SetFloat(x)
			}
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			records, bad := left(append(text, '\n'))
			far := x <= -greatest || x >= greatest
			if v.Addr().Interface() == any(&r.Version) {
				far = true // other values are other versions
			}
			if far != (len(bad) == 1) || far == (len(records) == 1) {
				t.Errorf("%g: %d records, %v", x, len(records), bad)
			}
			asked++
		}
		v.SetZero()
	})
	if asked < 500 {
		t.Errorf("only %d numbers were asked", asked)
	}
	for _, word := range []string{"NaN", "Infinity", "-Infinity", "1e999"} {
		text := `{"version":1,"run":"r","trial":"t","loads":[{"throughputPerS":` + word + "}]}\n"
		if records, bad := left([]byte(text)); len(records) != 0 || len(bad) != 1 {
			t.Errorf("%s is read as %v, %v", word, records, bad)
		}
	}
	text := `{"version":1,"run":"r","trial":"t","loads":[{"throughputPerS":1e308}]}`
	if _, bad := left([]byte(text)); !strings.Contains(bad[0].Error(),
		"not a record: loads: throughputPerS: the number 1e+308 is beyond ±4e+18") {
		t.Error(bad)
	}
	head := filepath.Join(dir, RunFile)
	if err := os.WriteFile(head, []byte(`{"version":1,"host":{"grade":"A"},"forNs":`+
		`4000000000000000000}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "forNs") {
		t.Errorf("a head for ever: %v", err)
	}
}

// Histograms as written here are accepted; one that needs more memory is rejected.
func TestHistogramsAreBounded(t *testing.T) {
	check := func(digits int, want string) {
		t.Helper()
		h := hdrhistogram.New(1, 1<<62, digits)
		if err := h.RecordValue(42); err != nil {
			t.Fatal(err)
		}
		text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := Dist{HDR: string(text)}.Histogram()
		runtime.ReadMemStats(&after)
		const most = 2 << 20 // bytes
		if took := after.TotalAlloc - before.TotalAlloc; took > most {
			t.Errorf("%d digits took %d bytes", digits, took)
		}
		if want != "" && (err == nil || err.Error() != want) || want == "" && err != nil {
			t.Errorf("%d digits: error %v, want %q", digits, err, want)
		}
		if want == "" && got.ValueAtQuantile(50) != 42 {
			t.Errorf("it holds %d", got.ValueAtQuantile(50))
		}
	}
	check(3, "")
	check(5, "a histogram that takes more than 262144 counts")
	if h, err := (Dist{}).Histogram(); h != nil || err != nil {
		t.Errorf("none at all is %v, %v", h, err)
	}
	for _, text := range []string{"x", "AAAA", "HISTFAAAAA==", "HISTFAAAAAB4nA=="} {
		if h, err := (Dist{HDR: text}).Histogram(); h != nil || err == nil {
			t.Errorf("%q is %v, %v", text, h, err)
		}
	}
}
