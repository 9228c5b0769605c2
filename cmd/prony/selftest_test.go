package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator/selftest"
	"prony.example/internal/generator/truth"
	"prony.example/internal/observe/host"
	"prony.example/internal/suite"
	"prony.example/internal/trial/machine"
	"prony.example/load"
	"prony.example/record"
)

func TestOutcomesArePrinted(t *testing.T) {
	var out bytes.Buffer
	a := &app{stdout: &out}
	a.printOutcomes([]selftest.Outcome{
		{Case: "stall", Known: "a freeze", State: selftest.OK, TookNs: 5e9, Lines: []selftest.Line{
			{What: "mean", Formula: "s²/2T", Unit: selftest.Ns, Known: 125e6, Measured: 126e6,
				OffBy: 0.008, Limit: 0.02, OK: true, State: selftest.OK},
			{What: "rate", Formula: "1/d", Unit: selftest.PerS, Known: 500, Measured: 495.04,
				OffBy: -0.00992, Limit: 0.03, OK: true, State: selftest.OK, KeptShare: 0.875},
		}, Machine: selftest.Machine{Idle: record.IdlePolls}},
		{Case: "wrong", Known: "1 in 10", State: selftest.Disturbed, Disturbed: "late by 1 ms",
			TookNs: 1e9, Lines: []selftest.Line{
				{What: "errors", Formula: "n/10", Unit: selftest.Plain, Known: 12000,
					Measured: 11999, OffBy: -1.0 / 12000, State: selftest.Disturbed,
					Lowest: 11998, Highest: 12000},
				{What: "under way", Formula: "N", Unit: selftest.Plain, Known: 0, Measured: 0.25,
					OffBy: 0.25, State: selftest.Wrong},
			}},
	})
	head := strings.Repeat(" ", 64) + "known   measured     off by   limit"
	want := strings.Join([]string{
		"stall: a freeze", head,
		"  mean                       s²/2T                             125 ms     126 ms    " +
			"+0.80 %    ±2 %  ok",
		"  rate                       1/d                              500.0/s    495.0/s    " +
			"-0.99 %    ±3 %  ok, without 12.5 % of the requests, which were due near stalls",
		"", "wrong: 1 in 10", head,
		"  errors                     n/10                              12,000     11,999    " +
			"-0.01 %    none  disturbed, delays of the machine explain 11,998 to 12,000",
		"  under way                  N                                      0       0.25    " +
			"   0.25    none  wrong",
		"  disturbed: late by 1 ms", "",
		"1 of 2 cases are ok, 0 wrong, 1 disturbed; the test took 6.00 s; idle cores polled", "",
	}, "\n")
	if got := strings.ReplaceAll(out.String(), "  \n", "\n"); got != want {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
}

// pollingWorld is a machine whose idle cores poll during runs.
type pollingWorld struct{ machine.World }

func (pollingWorld) Idle(record.Provenance) string { return record.IdlePolls }

// Idle cores poll while cases run, as during runs, and are left as they are with --idle halt. The
// kernel reports the request.
func TestSelftestPolls(t *testing.T) {
	testsets.Live(t)
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	bound := func() (us int32) {
		f, err := os.Open("/dev/cpu_dma_latency")
		if err != nil {
			t.Skip("the latency of idle cores cannot be read: ", err)
		}
		defer f.Close()
		if err := binary.Read(f, binary.NativeEndian, &us); err != nil {
			t.Fatal(err)
		}
		return us
	}
	if bound() == 0 {
		t.Skip("another program keeps idle cores awake")
	}
	if release, err := host.PollIdle(record.IdlePolls); err != nil {
		t.Skip("no right to keep idle cores awake: ", err)
	} else {
		release()
	}
	seen := errors.New("a case began")
	a := &app{world: pollingWorld{}, stdout: io.Discard, stderr: t.Output()}
	for idle, polls := range map[string]bool{"": true, suite.IdleHalts: false} {
		f := &selftestFlags{engine: load.Auto, pacing: load.Frugal, idle: idle}
		_, err := a.selftestCases(t.Context(), selftest.Cases()[:1], f, func(s *selftest.Setup) {
			s.Start = func(context.Context, string, truth.Params, truth.Options) (selftest.Server,
				error,
			) {
				if us := bound(); (us == 0) != polls {
					t.Errorf("--idle %q: idle cores may need %d µs", idle, us)
				}
				return nil, seen
			}
		})
		if !errors.Is(err, seen) {
			t.Errorf("--idle %q: error %v", idle, err)
		}
	}
	if bound() == 0 {
		t.Error("idle cores still poll after the cases")
	}
}

// The verdict detects obvious faults, through the real program and a server of its own. Faults that
// a busy machine may hide are tested by hand.
func TestSelftestVerdicts(t *testing.T) {
	testsets.Once(t, "faults that the verdict meets", testsets.Needs{})
	testsets.Measured(t)
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	var stdout, stderr bytes.Buffer
	err := run(t.Context(), machine.World{}, []string{"selftest", "6 connections", "from 40ms"},
		&stdout, &stderr)
	if err != nil || !strings.Contains(stdout.String(), "2 of 2 cases are ok") {
		t.Errorf("%v\n%s%s", err, &stdout, &stderr)
	}
	cases, err := chooseCases([]string{"verdicts"})
	if err != nil || len(cases) != len(selftest.Verdicts()) {
		t.Errorf("%d cases, %v", len(cases), err)
	}
}

// faults has one fault for each case, which only that case's oracle must find.
var faults = map[string]func(*load.Result){
	"stall":              sendingCounts,
	"pause":              sendingCounts,
	"M/D/1":              func(r *load.Result) { clockOff(r, 1.04) },
	"M/M/1":              func(r *load.Result) { clockOff(r, 0.96) },
	"capacity":           func(r *load.Result) { r.ThroughputPerS *= 1.05 },
	"overload":           func(r *load.Result) { r.BacklogPerS = 0 },
	"fixed service time": func(r *load.Result) { r.ThroughputPerS *= 1.05 },
	"concurrency cap":    func(r *load.Result) { clockOff(r, 1.04) },
	"slow warm-up": func(r *load.Result) {
		for i := range r.Series.P50Ns {
			r.Series.P50Ns[i] = r.ResponseTime.P50Ns
		}
	},
	"wrong bodies": func(r *load.Result) { r.Errors.Body--; r.Answered++ },
	"resets":       func(r *load.Result) { r.Reconnects = 0 },
	"timeouts": func(r *load.Result) {
		r.ResponseTime.MeanNs, r.ResponseTime.P99Ns = 2e5, 2e5
	},
	"hang":             func(r *load.Result) { r.Censored = 0 },
	"load shedding":    func(r *load.Result) { r.Answered += r.Errors.Status; r.Errors.Status = 0 },
	"keep-alive limit": func(r *load.Result) { r.Reconnects = 0 },
	"drip":             func(r *load.Result) { r.FirstByte = r.ServiceTime },
	"own lag":          func(r *load.Result) { r.Lag = record.Dist{} },
	"processor time":   func(*load.Result) {}, // the server's CPU time is halved
}

// sendingCounts simulates coordinated omission: the clock of a request starts when it is sent.
func sendingCounts(r *load.Result) {
	r.ResponseTime, r.Lag = r.ServiceTime, record.Dist{}
	for i, due := range r.Sample.Due {
		r.Sample.Response[i] -= r.Sample.Left[i] - due
	}
}

func clockOff(r *load.Result, speed float64) {
	d := &r.ResponseTime
	d.MeanNs *= speed
	for _, ns := range []*int64{&d.MinNs, &d.P50Ns, &d.P90Ns, &d.P99Ns, &d.P999Ns, &d.MaxNs} {
		*ns = int64(speed * float64(*ns))
	}
	for i := range r.Sample.Response {
		r.Sample.Response[i] = int64(speed * float64(r.Sample.Response[i]))
	}
}

// plant makes each case's load report its fault.
func plant(s *selftest.Setup) {
	offer, start := s.Offer, s.Start
	s.Offer = func(ctx context.Context, spec load.Spec) (*load.Result, error) {
		r, err := offer(ctx, spec)
		if err == nil {
			faults[spec.Name](r)
		}
		return r, err
	}
	s.Start = func(ctx context.Context, kind string, p truth.Params, o truth.Options) (
		selftest.Server, error) {
		server, err := start(ctx, kind, p, o)
		return halved{server}, err
	}
}

// halved is a server that reports half of its CPU time.
type halved struct{ selftest.Server }

func (h halved) CPU() (time.Duration, error) {
	d, err := h.Server.CPU()
	return d / 2, err
}

// Each oracle finds its fault on this machine: its case is wrong, and not disturbed, also beside
// programs that keep all cores busy. Without permission for priority over them, a case may be
// disturbed.
func TestSelftestFindsFaults(t *testing.T) {
	testsets.Long(t, "faulty generators", testsets.Needs{}) // 2 min each
	testsets.Measured(t)
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	find := func(t *testing.T) {
		a := &app{world: machine.World{}, stdout: io.Discard, stderr: t.Output()}
		f := &selftestFlags{engine: load.Auto, pacing: load.Frugal}
		outcomes, err := a.selftestCases(t.Context(), selftest.Cases(), f, plant)
		if err != nil || len(outcomes) != len(faults) {
			t.Fatalf("%d outcomes, %v", len(outcomes), err)
		}
		states := count(outcomes)
		t.Logf("wrong %d, disturbed %d, ok %d", states[selftest.Wrong], states[selftest.Disturbed],
			states[selftest.OK])
		for _, o := range outcomes {
			if o.State == selftest.OK || o.State == selftest.Disturbed && o.Machine.Ahead {
				t.Errorf("%s is %s: %+v", o.Case, o.State, o)
			}
		}
	}
	t.Run("beside busy loops", func(t *testing.T) {
		for range runtime.NumCPU() {
			loop := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
			if err := loop.Start(); err != nil {
				t.Fatal(err)
			}
			defer loop.Wait()         //nolint:errcheck // it is killed
			defer loop.Process.Kill() //nolint:errcheck // it may have ended
		}
		find(t)
	})
	t.Run("alone", find)
}

// A wrong case fails, and a disturbed one is inconclusive.
func TestSelftestEnds(t *testing.T) {
	for _, row := range []struct {
		states []string
		code   int
		text   string
	}{
		{[]string{selftest.OK, selftest.OK}, cli.Fine, ""},
		{[]string{selftest.OK, selftest.Disturbed}, cli.Inconclusive, "disturbed 1 of 2"},
		{[]string{selftest.Wrong, selftest.Disturbed}, cli.Failed, "1 of 2 cases are wrong"},
	} {
		var outcomes []selftest.Outcome
		for _, s := range row.states {
			outcomes = append(outcomes, selftest.Outcome{State: s})
		}
		err := endOf(outcomes)
		if cli.Code(err) != row.code || row.text != "" &&
			!strings.Contains(fmt.Sprint(err), row.text) {
			t.Errorf("%q: %v", row.states, err)
		}
	}
}

// The time of others on the cores in use excludes this program's and the server's.
func TestParseCores(t *testing.T) {
	const before = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 10 20 30 1 2 3 4 5 0 0\n" +
		"cpu1 1 1 1 1 1 1 1 1 0 0\ncpu10 7 7 7 7 7 7 7 7 0 0\nintr 1 2\n"
	if got := parseCores(before, []int{0}); got != (coreTimes{600e6, 50e6}) {
		t.Errorf("core 0: %+v", got)
	}
	if got := parseCores(before, []int{0, 10}); got != (coreTimes{810e6, 120e6}) {
		t.Errorf("cores 0 and 10: %+v", got)
	}
	if got := parseCores("cpu0 x\n", []int{0}); got != (coreTimes{}) {
		t.Errorf("no numbers: %+v", got)
	}
	steal, others := coreTimes{900e6, 70e6}.since(coreTimes{600e6, 50e6}, 100e6)
	if steal != 20e6 || others != 200e6 {
		t.Errorf("stolen %d, others %d", steal, others)
	}
	if _, others := (coreTimes{600e6, 0}).since(coreTimes{600e6, 0}, 100e6); others != 0 {
		t.Errorf("others %d", others)
	}
}
