package history

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/analysis/table"
	"prony.example/internal/dev/schema"
	"prony.example/record"
	"prony.example/stats"
)

var start = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// history has a run per day with one trial of x at each of these rates.
func history(perS ...float64) (runs []Run) {
	for day, rate := range perS {
		id := fmt.Sprintf("day-%02d", day)
		r := &record.Record{
			Version: 1, Run: id, Trial: "b1-01-x", Block: 1, Scenario: "read", Contract: "hello",
			Time: start.AddDate(0, 0, day), Outcome: record.Measured,
			Target:     record.Target{Name: "x", Variant: "none"},
			Provenance: record.Provenance{Commit: fmt.Sprintf("commit%08d", day), Cores: 2},
			Verdict:    record.Verdict{Grade: record.Valid},
			Loads: []record.Load{{Name: "peak", Model: "closed", Connections: 64,
				ThroughputPerS: rate, WindowNs: 1e9}},
		}
		runs = append(runs, Run{Head: record.Run{ID: id},
			Records: []*record.Record{r}})
	}
	return runs
}

var throughput = Options{Metrics: []string{"throughput"}}

// steps has noise of about 1 % around levels, five runs each.
func steps(levels ...float64) (out []float64) {
	for _, l := range levels {
		for _, noise := range []float64{0.99, 1.01, 1, 0.995, 1.005} {
			out = append(out, l*noise)
		}
	}
	return out
}

func TestChangesAreFound(t *testing.T) {
	check := func(want string, perS []float64) {
		t.Helper()
		trend := find(history(perS...), throughput)
		if len(trend.Series) != 1 {
			t.Fatalf("%d series", len(trend.Series))
		}
		var got []string
		for _, c := range trend.Series[0].Changes {
			got = append(got, fmt.Sprintf("%d %s %.2f", c.Index, c.Text, c.Ratio()))
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%v: changes are %q, want %q", perS, text, want)
		}
	}
	check("", steps(1000, 1000))
	check("5 slower 0.90", steps(1000, 900))
	check("5 faster 1.20", steps(1000, 1200))
	check("5 slower 0.80, 10 faster 1.25", steps(1000, 800, 1000))
	check("", steps(1000)) // five runs are too few
}

// TestWhatIsWorse checks that growth of a latency, a cost or a size is worse, and of a rate better.
func TestWhatIsWorse(t *testing.T) {
	runs := history(steps(1000, 1200)...)
	for i, r := range runs {
		r.Records[0].Loads[0].Service.CPUPerRequestNs = steps(1000, 1200)[i]
	}
	trend := find(runs, Options{Metrics: []string{"throughput", "cpu_per_request"}})
	if len(trend.Series) != 2 {
		t.Fatalf("%d series", len(trend.Series))
	}
	for _, s := range trend.Series {
		worse := s.Metric == "cpu_per_request"
		if len(s.Changes) != 1 || s.Changes[0].Worse != worse || s.Regressed(0) != worse {
			t.Errorf("%s has %+v", s.Metric, s.Changes)
		}
	}
}

func TestRunsAreInOrderOfTime(t *testing.T) {
	runs := history(steps(1000, 900)...)
	slices.Reverse(runs)
	trend := find(runs, throughput)
	s := trend.Series[0]
	if s.Points[0].Run != "day-00" || s.Points[9].Run != "day-09" || len(s.Changes) != 1 ||
		!s.Changes[0].Worse {
		t.Errorf("first %s, last %s, changes %+v", s.Points[0].Run, s.Points[9].Run, s.Changes)
	}
}

// TestCopiesCountOnce checks that a run in two folders is one run of the trend.
func TestCopiesCountOnce(t *testing.T) {
	runs := history(steps(1000, 900)...)
	again := runs[4]
	again.Head.ID = "day-04-copy"
	trend := find(append(runs, again), throughput)
	if trend.Runs != 10 || len(trend.Series[0].Points) != 10 {
		t.Errorf("%d runs, %d points", trend.Runs, len(trend.Series[0].Points))
	}
}

// TestUnlikeRunsAreKeptApart checks that a newer kernel begins another series without a change.
func TestUnlikeRunsAreKeptApart(t *testing.T) {
	runs := history(steps(1000, 900)...)
	for i, r := range runs {
		r.Records[0].Provenance.OS, r.Records[0].Provenance.Kernel = "Linux", "6.18.1"
		if i >= 5 {
			r.Records[0].Provenance.Kernel = "6.19.1"
		}
	}
	trend := find(runs, throughput)
	if len(trend.Series) != 2 || len(trend.Series[0].Points) != 5 || len(trend.Regressions(0)) > 0 {
		t.Fatalf("%d series, regressions %v", len(trend.Series), trend.Regressions(0))
	}
	if len(trend.Notes) != 2 || !strings.HasSuffix(trend.Notes[1],
		"are separate series, because they differ in kernel: Linux 6.18 against Linux 6.19.") {
		t.Errorf("notes are %q", trend.Notes)
	}
	var text strings.Builder
	if err := Text(&text, trend); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), "  5 runs\n"); n != 2 {
		t.Errorf("%d series say that they are short:\n%s", n, &text)
	}
}

// TestSeriesOfOneTargetAreCompared checks which pairs of series get a note: those of one scenario
// and one target with different configurations.
// A percentile that includes the machine's stalls in some runs, because it is unknown without them,
// has no change in these runs: they are another series.
func TestRunsWithStallsAreKeptApart(t *testing.T) {
	runs := history(steps(1, 1, 1)...)
	for i, run := range runs {
		h := hdrhistogram.New(1, 60e9, 3)
		_ = h.RecordValues(int64(4e6+1e3*float64(i%5)), 10000) // in range
		hdr, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			t.Fatal(err)
		}
		var all []record.StallFree
		for _, q := range []float64{0.5, 0.9, 0.99, 0.999} {
			x := record.StallFree{Quantile: q, Ns: int64(2e6 + 1e3*float64(i%5)), RawNs: 4e6,
				KeptShare: 0.9}
			if i >= 7 {
				x.Unknown, x.KeptShare = stats.TooMuchExcluded, 0.5
			}
			all = append(all, x)
		}
		run.Records[0].Loads[0] = record.Load{Name: "half", Model: record.Open, RatePerS: 1000,
			WindowNs: 10e9, Done: 10000, Scheduled: 10000, StallFree: all,
			ResponseTime: record.Dist{Count: 10000, HDR: string(hdr)}}
	}
	trend := find(runs, Options{Metrics: []string{"p99"}})
	if len(trend.Series) != 2 || len(trend.Series[0].Points) != 7 ||
		len(trend.Series[0].Changes)+len(trend.Series[1].Changes) > 0 {
		t.Fatalf("%d series: %+v", len(trend.Series), trend.Series)
	}
	names := trend.Series[0].name() + ", " + trend.Series[1].name()
	if names != "half p99 without stalls, half p99" || !slices.Contains(trend.Notes, "read, x: "+
		"runs whose half p99 includes the machine's stalls are a separate series.") {
		t.Errorf("%s: %v", names, trend.Notes)
	}
	past, shapes, err := Pack(runs[0], Of(runs[0], table.Analyze(runs[0].Records, table.Options{}),
		Options{}))
	if err != nil {
		t.Fatal(err)
	}
	again, err := NewUnpacker(shapes).Series(past)
	if err != nil || !slices.ContainsFunc(again, func(s Series) bool { return s.WithoutStalls }) {
		t.Errorf("unpacked: %+v, %v", again, err)
	}
}

func TestSeriesOfOneTargetAreCompared(t *testing.T) {
	trend := &Trend{Series: []Series{
		{Scenario: "read", Target: "x", ConfigHash: "a"},
		{Scenario: "read", Target: "x", ConfigHash: "a"}, // of another metric
		{Scenario: "read", Target: "x", ConfigHash: "b"},
		{Scenario: "read", Target: "x", ConfigHash: "a"}, // whatever the order
		{Scenario: "read", Target: "y", ConfigHash: "c"},
		{Scenario: "write", Target: "x", ConfigHash: "d"},
	}}
	trend.apart()
	want := []string{"read, x: runs with configurations a and b are separate series, because " +
		"they differ in a setting that only one of these runs recorded."}
	if !slices.Equal(trend.Notes, want) {
		t.Errorf("notes are %q, want %q", trend.Notes, want)
	}
}

// TestShortSeriesAreToldOnce checks that there is one note on short series, whatever their number.
func TestShortSeriesAreToldOnce(t *testing.T) {
	check := func(want string, targets int, perS ...float64) {
		t.Helper()
		runs := history(perS...)
		for i := range runs {
			for k := range targets - 1 {
				other := *runs[i].Records[0]
				other.Target.Name = fmt.Sprintf("y%02d", k)
				runs[i].Records = append(runs[i].Records, &other)
			}
		}
		trend := find(runs, throughput)
		for name, print := range map[string]func(io.Writer, Trend) error{
			"text": Text, "Markdown": Markdown, "JSON": JSON} {
			var out strings.Builder
			if err := print(&out, trend); err != nil {
				t.Fatal(err)
			}
			n := strings.Count(out.String(), "6 runs with one configuration")
			if want == "" && n != 0 || want != "" && (n != 1 || !strings.Contains(out.String(),
				want)) {
				t.Errorf("%s of %d runs says it %d times, want %q:\n%s", name, len(perS), n, want,
					&out)
			}
			if lines := strings.Count(out.String(), "\n"); len(perS) == 1 && name != "JSON" &&
				lines > 6 {
				t.Errorf("%s of one run has %d lines:\n%s", name, lines, &out)
			}
		}
	}
	check("1 of 1 series has fewer than 6 runs", 1, 1000, 1000)
	check("20 of 20 series have fewer than 6 runs", 20, 1000)
	check("", 20, steps(1000, 1000)...)
}

// TestWhichRegressionsFail checks that a loss counts if it is recent and the last change.
func TestWhichRegressionsFail(t *testing.T) {
	check := func(want bool, latest int, perS []float64) {
		t.Helper()
		trend := find(history(perS...), throughput)
		if got := len(trend.Regressions(latest)) > 0; got != want {
			t.Errorf("latest %d: %v, want %v; changes %+v", latest, got, want,
				trend.Series[0].Changes)
		}
	}
	check(true, 10, steps(1000, 900))
	check(true, 5, steps(1000, 900)) // five runs of the new level
	check(false, 4, steps(1000, 900))
	check(true, 0, steps(1000, 900, 900, 900))
	check(false, 10, steps(1000, 900, 900, 900))
	check(false, 0, steps(1000, 900, 1000)) // got better again
	check(false, 0, steps(1000, 1100))
}

// TestWhatIsLeftOut checks that INVALID trials and rows of another checkout are not in a history.
func TestWhatIsLeftOut(t *testing.T) {
	runs := history(steps(1000, 1000)...)
	runs[3].Records[0].Verdict.Grade = record.Invalid
	runs[4].Records[0].Target.Origin = "base"
	trend := find(runs, throughput)
	if len(trend.Series) != 1 || len(trend.Series[0].Points) != 8 {
		t.Errorf("%d series, the first has %d points", len(trend.Series),
			len(trend.Series[0].Points))
	}
	if none := find(runs, Options{Targets: []string{"y"}}); len(none.Series) != 0 ||
		len(none.Notes) != 1 {
		t.Errorf("%d series of nobody, notes %q", len(none.Series), none.Notes)
	}
}

// TestSeriesShareTheirAlpha checks that many series share one probability of a false alarm: a
// change that is significant alone is not among fifty.
func TestSeriesShareTheirAlpha(t *testing.T) {
	perS := []float64{1000, 1010, 990, 985, 1005, 971, 985, 965, 978, 970}
	alone := find(history(perS...), Options{Metrics: throughput.Metrics, Alpha: 0.5})
	if len(alone.Series[0].Changes) == 0 {
		t.Fatal("alone it is not significant")
	}
	runs := history(perS...)
	for i := range runs {
		first := *runs[i].Records[0]
		for k := range 49 {
			other := first
			other.Target.Name = fmt.Sprintf("y%02d", k)
			runs[i].Records = append(runs[i].Records, &other)
		}
	}
	for _, s := range find(runs, Options{Metrics: throughput.Metrics, Alpha: 0.5}).Series {
		if len(s.Changes) > 0 {
			t.Fatalf("among fifty %s has %+v", s.Target, s.Changes)
		}
	}
}

func TestSparkline(t *testing.T) {
	check := func(want string, xs ...float64) {
		t.Helper()
		if got := Sparkline(xs); got != want {
			t.Errorf("%v is %s, want %s", xs, got, want)
		}
	}
	check("")
	check("▄", 5)
	check("▄▄▄", 2, 2, 2)
	check("▁█", 1, 2)
	check("▁▂▃▄▅▆▇█", 0, 1, 2, 3, 4, 5, 6, 7)
	long := make([]float64, 50)
	long[0], long[49] = 9, 1 // the first has left the picture
	check(strings.Repeat("▁", 39)+"█", long...)
}

func TestATrendIsToldInEveryForm(t *testing.T) {
	trend := find(history(steps(1000, 900)...), throughput)
	var text, md, csv, js strings.Builder
	for _, err := range []error{Text(&text, trend), Markdown(&md, trend), CSV(&csv, trend),
		JSON(&js, trend)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	schema.Valid(t, "trend", []byte(js.String()))
	change := "slower: −10 %, 1.00k/s → 900/s, p <0.001, between day-04 (commit000000) and day-05"
	for what, out := range map[string]string{"text": text.String(), "Markdown": md.String()} {
		for _, want := range []string{change, "1 change", "read · x · method", "10 runs, 1 "} {
			if !strings.Contains(strings.ReplaceAll(out, "&lt;", "<"), want) {
				t.Errorf("%s lacks %q:\n%s", what, want, out)
			}
		}
	}
	lines := strings.Split(strings.TrimSpace(csv.String()), "\n")
	if len(lines) != 11 || !strings.Contains(lines[6], ",slower,1000,900,") ||
		!strings.HasSuffix(lines[5], ",,,,") {
		t.Errorf("CSV is\n%s", &csv)
	}
	var doc struct {
		Series []struct {
			Points  []struct{ Value float64 }
			Changes []struct {
				Index int
				Run   string
				Worse bool
				P     float64
			}
		}
	}
	if err := json.Unmarshal([]byte(js.String()), &doc); err != nil {
		t.Fatal(err)
	}
	c := doc.Series[0].Changes[0]
	if c.Index != 5 || c.Run != "day-05" || !c.Worse || math.IsNaN(c.P) ||
		len(doc.Series[0].Points) != 10 {
		t.Errorf("JSON is %+v", doc)
	}
}

// find makes the series of runs, in any order.
func find(runs []Run, o Options) Trend {
	var all [][]Series
	for _, r := range byTime(runs) {
		all = append(all, Of(r, table.Analyze(r.Records, table.Options{}), o))
	}
	return Join(all, o)
}

func byTime(runs []Run) []Run {
	sorted := slices.Clone(runs)
	slices.SortStableFunc(sorted, func(a, b Run) int {
		return cmp.Or(began(a).Compare(began(b)), cmp.Compare(a.Head.ID, b.Head.ID))
	})
	return sorted
}
