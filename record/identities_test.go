package record

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// proven is a record whose numbers agree with each other: 900 good responses and 90 errors of 1000
// due requests in 2 s, in four intervals.
func proven() *Record {
	times := Dist{Count: 900, MinNs: 1e6, MeanNs: 2e6, P50Ns: 2e6, P90Ns: 3e6, P99Ns: 4e6,
		P999Ns: 5e6, MaxNs: 6e6}
	return &Record{Trial: "b1-01-a", Block: 1, Order: 1, Outcome: Measured,
		Verdict: Verdict{Grade: Valid},
		Loads: []Load{{Name: "half", Model: Open, WindowNs: 2e9, Scheduled: 1000, Sent: 990,
			Done: 880, Answered: 900, Censored: 10, Errors: Errors{Status: 90},
			ThroughputPerS: 440, ResponseTime: times, ServiceTime: times,
			Series: Series{IntervalNs: 5e8, Done: []int64{220, 220, 220, 220},
				Failed: []int64{20, 20, 20, 20}}}}}
}

// identityRows are changes of a proven record, and the violated identity.
var identityRows = []struct {
	want   string
	change func(*Record, *Load)
}{
	{`verdict.grade "" is none of VALID`, func(r *Record, _ *Load) { r.Verdict = Verdict{} }},
	{`verdict.grade "GREAT"`, func(r *Record, _ *Load) { r.Verdict.Grade = "GREAT" }},
	{`verdict.grade "valid"`, func(r *Record, _ *Load) { r.Verdict.Grade = "valid" }},
	{"<nil>", func(r *Record, _ *Load) { r.Verdict.Grade = Invalid }},
	{`outcome "" is neither`, func(r *Record, _ *Load) { r.Outcome = "" }},
	{"<nil>", func(r *Record, _ *Load) { r.Outcome, r.Loads = Failed, nil }},
	{"loads: it has none", func(r *Record, _ *Load) { r.Loads = nil }},
	{"loads: it has none", func(r *Record, _ *Load) { r.Loads = []Load{} }},
	{`loads: it has two with the name "half"`, func(r *Record, l *Load) {
		r.Loads = append(r.Loads, *l)
	}},
	{"verdict.grade is VALID, but the finding sums is INVALID", func(r *Record, _ *Load) {
		r.Verdict.Findings = []Finding{{Rule: "sums", Load: "half", Grade: Invalid}}
	}},
	{"<nil>", func(r *Record, _ *Load) { r.Time = time.Time{} }}, // early records lack it
	{"<nil>", func(r *Record, _ *Load) { r.Time = time.Unix(0, 0) }},
	{"<nil>", func(r *Record, _ *Load) { r.Time = time.Unix(0, greatest) }},
	{"time is 1969-12-31T23:59:59Z: must be between 1970 and 2096",
		func(r *Record, _ *Load) { r.Time = time.Unix(-1, 0) }},
	{"time is 2096-10-02T07:06:40Z: must be between 1970 and 2096",
		func(r *Record, _ *Load) { r.Time = time.Unix(0, greatest+1) }},
	{"time is 9999-01-01T00:00:00Z", func(r *Record, _ *Load) {
		r.Time = time.Date(9999, 1, 1, 9, 0, 0, 0, time.FixedZone("", 9*3600))
	}},
	{"durationNs is -1: the trial cannot end before it begins",
		func(r *Record, _ *Load) { r.DurationNs = -1 }},
	{"artifact.sizeBytes is -5", func(r *Record, _ *Load) { r.Artifact.SizeBytes = -5 }},
	{"limits.cpus is -1", func(r *Record, _ *Load) { r.Limits.CPUs = -1 }},
	{"limits.memoryBytes is -1", func(r *Record, _ *Load) { r.Limits.MemoryBytes = -1 }},
	{"warmup.durationNs is -1", func(r *Record, _ *Load) { r.Warmup.DurationNs = -1 }},
	{"warmup.requests is -1", func(r *Record, _ *Load) { r.Warmup.Requests = -1 }},
	{"connections is -4", func(_ *Record, l *Load) { l.Connections = -4 }},
	{"threads is -1", func(_ *Record, l *Load) { l.Threads = -1 }},
	{"inFlightMean is -3", func(_ *Record, l *Load) { l.InFlightMean = -3 }},
	{"start.rssBytes is -2", func(r *Record, _ *Load) { r.Start.RSSBytes = -2 }},
	{"start.readyNs is -2", func(r *Record, _ *Load) { r.Start.ReadyNs = -2 }},
	{"<nil>", func(r *Record, _ *Load) { r.Start.ReadyNs = -1 }}, // unknown
	{"scheduled is 9007199254740992: must be less than 2^53",
		func(_ *Record, l *Load) { l.Scheduled = 1 << 53 }},
	{"service.rssMaxBytes is -100", func(_ *Record, l *Load) { l.Service.RSSMaxBytes = -100 }},
	{"<nil>", func(_ *Record, l *Load) { l.Service.RSSMaxBytes = -1 }},
	// 970 requests in 2 s are 1455 in 3 s, of 1 ms each.
	{"<nil>", func(_ *Record, l *Load) {
		l.Service = Usage{WindowNs: 3e9, CPUNs: 1455e6, CPUPerRequestNs: 1e6}
	}},
	{"windowNs: 1455000 requests, but the latter is 1455", func(_ *Record, l *Load) {
		l.Service = Usage{WindowNs: 3e9, CPUNs: 1455e6, CPUPerRequestNs: 1e3}
	}},
	{"start.listenNs ≤ start.readyNs: 3e+06, but the latter is 2e+06", func(r *Record, _ *Load) {
		r.Start = Start{ListenNs: 3e6, ReadyNs: 2e6, FirstResponseNs: 4e6}
	}},
	{"start.readyNs ≤ start.firstResponseNs: 3e+06, but", func(r *Record, _ *Load) {
		r.Start = Start{ListenNs: 1e6, ReadyNs: 3e6, FirstResponseNs: 2e6}
	}},
	{"<nil>", func(r *Record, _ *Load) { r.Start = Start{ReadyNs: 3e6, FirstResponseNs: 3e6} }},
	{"slices.requests is 5, but slices.timeNs is 0", func(_ *Record, l *Load) {
		l.Slices = &Sliced{Slices: 1, Requests: 5}
	}},
	{"slices.cpuNs is -2", func(_ *Record, l *Load) { l.Slices = &Sliced{CPUNs: -2} }},
	{"slices.loadCPUNs is -1", func(_ *Record, l *Load) { l.Slices = &Sliced{LoadCPUNs: -1} }},
	{"slices.starvedNs is -2", func(_ *Record, l *Load) { l.Slices = &Sliced{StarvedNs: -2} }},
	{"throughputPerS: the number NaN", func(_ *Record, l *Load) {
		l.ThroughputPerS = math.NaN()
	}},
	{"block -1", func(r *Record, _ *Load) { r.Block = -1 }},
	{"order -1", func(r *Record, _ *Load) { r.Order = -1 }},
	{"throughputPerS is -5", func(_ *Record, l *Load) { l.ThroughputPerS = -5 }},
	{"= throughputPerS: 440, but throughputPerS is 0",
		func(_ *Record, l *Load) { l.ThroughputPerS = 0 }},
	{"= throughputPerS: 440, but throughputPerS is 442",
		func(_ *Record, l *Load) { l.ThroughputPerS = 442 }},
	{"<nil>", func(_ *Record, l *Load) { l.ThroughputPerS, l.Driver = 442, "wrk 4.1.0" }},
	{"scheduled ≥ sent: 1000, but sent is 1001", func(_ *Record, l *Load) { l.Sent = 1001 }},
	{"scheduled ≥ answered + failed: 1000, but these are 950 + 90",
		func(_ *Record, l *Load) { l.Answered = 950 }},
	{"errors.status is -90", func(_ *Record, l *Load) { l.Errors.Status = -90 }},
	{"censored is -1", func(_ *Record, l *Load) { l.Censored = -1 }},
	{"windowNs is 0", func(_ *Record, l *Load) { l.WindowNs = 0 }},
	{"responseTime.count ≤ answered + errors.timeout: 901, but these are 900 + 0",
		func(_ *Record, l *Load) { l.ResponseTime.Count = 901 }},
	{"responseTime.count = answered + errors.timeout: 0, but these are 900 + 0",
		func(_ *Record, l *Load) { l.ResponseTime.Count = 0 }},
	{"<nil>", func(_ *Record, l *Load) { l.Model, l.ResponseTime.Count = Closed, 0 }},
	{"<nil>", func(_ *Record, l *Load) {
		l.ResponseTime.Count, l.Errors = 901, Errors{Status: 89, Timeout: 1}
	}},
	{"responseTime.p50Ns ≤ p90Ns", func(_ *Record, l *Load) { l.ResponseTime.P90Ns = 1e6 }},
	{"serviceTime.p999Ns ≤ maxNs", func(_ *Record, l *Load) { l.ServiceTime.MaxNs = 45e5 }},
	{"lag.p50Ns is -1", func(_ *Record, l *Load) { l.Lag.P50Ns = -1 }},
	{"meanNs is 7e+06", func(_ *Record, l *Load) { l.ResponseTime.MeanNs = 7e6 }},
	{"<nil>", func(_ *Record, l *Load) { l.ResponseTime.P999Ns = 0 }}, // some tools lack it
	{"series.done: 880, but the sum is 881", func(_ *Record, l *Load) { l.Series.Done[3]++ }},
	{"series.done: 880, but the sum is 879", func(_ *Record, l *Load) { l.Series.Done[3]-- }},
	{"series.done[1] is -220", func(_ *Record, l *Load) { l.Series.Done[1] = -220 }},
	{"series has 5 intervals", func(_ *Record, l *Load) {
		l.Series.Done = append(l.Series.Done, 0)
	}},
	{"series.failed has 3 intervals", func(_ *Record, l *Load) {
		l.Series.Failed = l.Series.Failed[:3]
	}},
	{"disturbedWindows is -1: must not be negative", func(_ *Record, l *Load) {
		l.Disturbed = -1
	}},
	{"idleTargets.cpuNs is -1: must not be negative", func(_ *Record, l *Load) {
		l.IdleTargets = []IdleTarget{{CPUNs: 1}, {CPUNs: -1}}
	}},
	{"series.intervalNs is 0", func(_ *Record, l *Load) { l.Series.IntervalNs = 0 }},
	{"<nil>", func(_ *Record, l *Load) { // a last interval of 0.2 s that was left out
		l.WindowNs, l.Done, l.ThroughputPerS = 22e8, 968, 440
	}},
}

// Check names the identity that a damaged or forged record violates.
func TestCheck(t *testing.T) {
	check := func(want string, change func(*Record, *Load)) {
		t.Helper()
		r := proven()
		if change != nil {
			change(r, &r.Loads[0])
		}
		err := r.Check()
		if got := fmt.Sprint(err); !strings.Contains(got, want) ||
			(err == nil) != (want == "<nil>") {
			t.Errorf("%s, want %s", got, want)
		}
	}
	check("<nil>", nil)
	for _, row := range identityRows {
		check(row.want, row.change)
	}
}

// A record that contradicts itself is left out by name, and another record of the trial takes its
// place.
func TestReadLeavesOutContradictions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	w, err := Create(dir, Run{ID: "r1", Trials: []string{"b1-01-a", "b2-01-a"}})
	if err != nil {
		t.Fatal(err)
	}
	forged := proven()
	forged.Loads[0].ThroughputPerS = 1e6
	good := proven()
	good.Trial, good.Block = "b2-01-a", 2
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var text []byte
	for _, r := range []*Record{forged, good, proven()} {
		r.Version, r.Run = Version, "r1"
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, line...), '\n')
	}
	if err := os.WriteFile(filepath.Join(dir, TrialsFile), text, 0o644); err != nil {
		t.Fatal(err)
	}
	_, records, bad, err := Read(dir)
	if err != nil || len(records) != 2 || len(bad) != 1 || bad[0].Line != 1 || !strings.Contains(
		bad[0].Error(), "run r1, trial b1-01-a contradicts itself: load half: done / windowNs = "+
			"throughputPerS: 440, but throughputPerS is 1e+06; it is left out") {
		t.Errorf("%d records, bad %v, error %v", len(records), bad, err)
	}
	if _, records, bad, err := ReadUnchecked(dir); err != nil || len(records) != 2 ||
		records[0].Loads[0].ThroughputPerS != 1e6 || len(bad) != 1 {
		t.Errorf("unchecked: %d records, bad %v, error %v", len(records), bad, err)
	}
}

// The runs of the repository prove their results.
func TestExamplesAreProven(t *testing.T) {
	root := filepath.Join("..", "examples")
	runs := 0
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == RunFile {
			runs++
			if _, records, bad, err := Read(filepath.Dir(path)); err != nil || len(bad) > 0 ||
				len(records) == 0 {
				t.Errorf("%s: %d records, bad %v, error %v", path, len(records), bad, err)
			}
		}
		return err
	})
	if err != nil || runs == 0 {
		t.Errorf("%d runs, error %v", runs, err)
	}
}

// TestWorth checks that only a share below a half is clearly smaller than all.
func TestWorth(t *testing.T) {
	check := func(effective, want float64, known bool) {
		t.Helper()
		share, ok := Autocorrelation{EffectiveShare: effective}.Worth()
		if share != want || ok != known {
			t.Errorf("of %v: %v, known %v; want %v, %v", effective, share, ok, want, known)
		}
	}
	check(0, 1, false)
	check(0.001, 0.001, true)
	check(0.499, 0.499, true)
	check(0.5, 1, true)
	check(1, 1, true)
	check(1.5, 1, true)
}
