package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// grown returns a run of so many trials of two targets, of which every twentieth is INVALID.
func grown(trials int) (records []record.Record, samples []record.Samples) {
	of := map[string]record.Record{}
	for _, r := range made() {
		if r.Outcome == record.Measured && len(of) < 2 {
			of[r.Target.Name] = r
		}
	}
	for i := range trials {
		r := of[slices.Sorted(maps.Keys(of))[i%2]]
		r.Trial, r.Block, r.Order = fmt.Sprintf("b%d-%d", i/2+1, i+1), i/2+1, i+1
		r.Time = r.Time.Add(time.Duration(i) * time.Hour)
		r.Loads = slices.Clone(r.Loads[:1])
		r.Loads[0].ResponseTime.HDR, r.Loads[0].ServiceTime.HDR = "", ""
		r.Verdict = record.Verdict{Grade: record.Valid}
		if i%20 == 0 {
			r.Verdict = record.Verdict{Grade: record.Invalid, Findings: []record.Finding{
				{Rule: "steal", Grade: record.Invalid, Unit: record.UnitShare, Value: 0.3}}}
		}
		records = append(records, r)
		samples = append(samples, record.Samples{Trial: r.Trial, Load: r.Loads[0].Name,
			TimeNs: []int64{1e9}, CPUCores: []float64{1}, RSSBytes: []int64{1 << 20}})
	}
	return records, samples
}

// The page of a run has a bounded size: it leaves out trials that it cannot show, says so, and
// shows those that no number counts.
func TestPageOfManyTrials(t *testing.T) {
	testsets.Whole(t, "many trials")
	var sizes []int
	for _, trials := range []int{2400, 4800} {
		records, samples := grown(trials)
		html := page(t, records, HTMLOptions{Samples: samples})
		sizes = append(sizes, len(html))
		for what, n := range map[string]struct{ got, most int }{
			"trials": {strings.Count(html, `<details class="trial" id="trial-`), mostDetailed},
			"series": {strings.Count(html, `"perS":`), 20 * mostDetailed},
			"rows of a log": {strings.Count(html, `<tr><th scope="row"><a href="#trial-`),
				mostDetailed},
		} {
			if n.got == 0 || n.got > n.most {
				t.Errorf("the page of %d trials has %d %s, want at most %d", trials, n.got, what,
					n.most)
			}
		}
		if n := strings.Count(html, `<summary><span class="badge invalid">`); n != trials/20 {
			t.Errorf("the page of %d trials describes %d INVALID ones, want all %d", trials, n,
				trials/20)
		}
		for _, want := range []string{undescribed(trials), "dots are drawn",
			fmt.Sprintf(">Trials (%d)<", trials)} {
			if !strings.Contains(html, want) {
				t.Errorf("the page of %d trials lacks %q", trials, want)
			}
		}
	}
	if sizes[1] > sizes[0]*21/20 { // there are some more bars, and longer numbers
		t.Errorf("the page of 4,800 trials has %d bytes, and that of 2,400 has %d", sizes[1],
			sizes[0])
	}
	t.Logf("the pages have %d bytes", sizes)
}

func TestSpread(t *testing.T) {
	all := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	for most, want := range map[int]string{0: "[]", 1: "[0]", 3: "[0 3 6]",
		9: "[0 1 2 3 4 5 6 7 8]", 10: fmt.Sprint(all), 11: fmt.Sprint(all)} {
		if got := fmt.Sprint(spread(all, most)); got != want {
			t.Errorf("%d of ten: %s, want %s", most, got, want)
		}
	}
}
