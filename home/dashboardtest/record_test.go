package dashboardtest

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"prony.example/internal/base/clock"
	"prony.example/internal/telemetry/boards"
)

var (
	record = flag.String("record", "", "URL of a store with Prometheus' API, such as that of "+
		"prony-home or Mimir: write its series of -of to -into")
	of   = flag.String("of", "", "with -record: the selector of the series")
	into = flag.String("into", "", "with -record: a file below deploy/check")
	told = flag.String("told", "", "with -record: what sent the series, for the file's first line")
)

// TestRecord writes series of real services to a file of deploy/check: the first value of each in
// the last -window, and the mean change of its values in 5 s.
func TestRecord(t *testing.T) {
	if *record == "" {
		t.Skip("no store is named: see -record")
	}
	l := live{base: map[string]string{"": *record}, end: clock.Wall()}
	var got struct{ Data struct{ Result []recorded } }
	span := int(window.Seconds())
	err := l.get("", "/api/v1/query", &got, "query", fmt.Sprintf("%s[%ds]", *of, span),
		"time", strconv.FormatInt(l.end.Unix(), 10))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, s := range got.Data.Result {
		lines = append(lines, s.line())
	}
	if len(lines) == 0 {
		t.Fatalf("%s finds nothing", *of)
	}
	slices.Sort(lines)
	text := "# Recorded by go -C home test ./dashboardtest -run Record -record URL -of '" + *of +
		"':\n# " + *told + "\n" + strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(*into, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// recorded is a series of Prometheus' API: numbers, or native histograms.
type recorded struct {
	Metric     map[string]string
	Values     [][2]any
	Histograms [][2]any
}

// line formats a series for deploy/check. Labels that say nothing about its kind are left out.
func (s recorded) line() string {
	name := s.Metric["__name__"]
	var labels []string
	for _, k := range slices.Sorted(maps.Keys(s.Metric)) {
		if k != "__name__" && k != "instance" && k != "service_instance_id" {
			labels = append(labels, fmt.Sprintf("%s=%q", k, s.Metric[k]))
		}
	}
	head := name + "{" + strings.Join(labels, ", ") + "} "
	if n := len(s.Histograms); n > 0 {
		step := histogramStep(s.Histograms[n-1][1].(map[string]any))
		return head + step + "+" + step + "x60"
	}
	first, last := value(s.Values[0]), value(s.Values[len(s.Values)-1])
	steps := (at(s.Values[len(s.Values)-1]) - at(s.Values[0])) / boards.Step.Seconds()
	slope := 0.0
	if steps > 0 {
		slope = (last - first) / steps
	}
	if slope == 0 {
		return head + number(first) + "x60"
	}
	text := number(slope)
	if slope > 0 {
		text = "+" + text
	}
	return head + number(first) + text + "x60"
}

func at(point [2]any) float64 { return point[0].(float64) }

func value(point [2]any) float64 {
	v, _ := strconv.ParseFloat(point[1].(string), 64) // Prometheus' own notation
	return v
}

func number(v float64) string {
	return strconv.FormatFloat(math.Round(v*1e9)/1e9, 'f', -1, 64)
}

// histogramStep returns a sixtieth of a native histogram of schema 3, that of Prony's loads, in the
// notation of Prometheus' unit tests.
func histogramStep(h map[string]any) string {
	per := func(v any) float64 {
		x, _ := strconv.ParseFloat(v.(string), 64)
		return x / 60
	}
	var counts []string
	offset, next := 0, 0
	for i, one := range h["buckets"].([]any) {
		b := one.([]any)
		upper, _ := strconv.ParseFloat(b[2].(string), 64)
		index := int(math.Round(math.Log2(upper) * 8))
		if i == 0 {
			offset, next = index, index
		}
		for ; next < index; next++ {
			counts = append(counts, "0")
		}
		counts = append(counts, number(per(b[3])))
		next++
	}
	return fmt.Sprintf("{{schema:3 sum:%s count:%s offset:%d buckets:[%s]}}", number(per(h["sum"])),
		number(per(h["count"])), offset, strings.Join(counts, " "))
}

// Lines are written as they are read.
func TestRecordedLine(t *testing.T) {
	check := func(s recorded, want string) {
		t.Helper()
		s.Metric["__name__"], s.Metric["instance"] = "x", "i"
		if got := s.line(); got != want {
			t.Errorf("%v: %s, want %s", s, got, want)
		}
	}
	const second = 1.0
	label := func() map[string]string { return map[string]string{"service_name": "a"} }
	check(recorded{Metric: label(), Values: [][2]any{{second, "3"}, {11 * second, "5"}}},
		`x{service_name="a"} 3+1x60`)
	check(recorded{Metric: label(), Values: [][2]any{{second, "3"}, {6 * second, "1"}}},
		`x{service_name="a"} 3-2x60`)
	check(recorded{Metric: label(), Values: [][2]any{{second, "3"}}}, `x{service_name="a"} 3x60`)
	h := map[string]any{"sum": "60", "count": "120", "buckets": []any{
		[]any{float64(0), "0.9", "1", "60"}, []any{float64(0), "1.1", "1.189207115002721", "60"}}}
	// The upper bounds 2^(0/8) and 2^(2/8): buckets 0 and 2.
	check(recorded{Metric: label(), Histograms: [][2]any{{second, h}}},
		`x{service_name="a"} {{schema:3 sum:1 count:2 offset:0 buckets:[1 0 1]}}+`+
			`{{schema:3 sum:1 count:2 offset:0 buckets:[1 0 1]}}x60`)
}
