package faults

import (
	"strings"
	"syscall"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// observedRun measures one trial of each service, and then observes one. Telemetry rules slices
// out, so a collector runs only beside trials one after another.
const observedRun = "--root ROOT run --telemetry --blocks 1 --warmup 1s --measure 4s --out OUT " +
	"--targets "

// attachedRun compares a service with an agent that sends telemetry with the plain one.
const attachedRun = "--root ROOT run --targets go-two --agent sender --blocks 1 --warmup 1s " +
	"--measure 4s --out OUT"

const sender = `agents:
  - name: sender
    about: It has an address.
    runtimes: [native]
    env: {SENDS_TO: "{otlpHttp}"}
    needsTelemetry: true
`

// lostCollectors are the ways in which a run loses its collector.
var lostCollectors = []struct {
	name, args    string
	before        int // records before the signal
	records, lost int // lost: those that say that telemetry is missing
	signal        syscall.Signal
	says          string
}{
	{"killed in the observed trial", observedRun + "go-two", 1, 2, 1, syscall.SIGKILL,
		"signal: killed"},
	{"killed in the comparison", observedRun + "go-two,go-three", 0, 4, 2, syscall.SIGKILL,
		"signal: killed"},
	{"killed in the comparison of an agent", attachedRun, 0, 2, 1, syscall.SIGKILL,
		"signal: killed"},
	{"hangs in the observed trial", observedRun + "go-two", 1, 2, 1, syscall.SIGSTOP,
		"did not end within"},
	{"hangs in the comparison", observedRun + "go-two,go-three", 0, 4, 2, syscall.SIGSTOP,
		"did not end within"},
	{"hangs in the comparison of an agent", attachedRun, 0, 2, 1, syscall.SIGSTOP,
		"did not end within"},
}

// A collector that is killed or hangs costs a run its telemetry: the results are there, and the
// output, the record and the report say what is missing.
func TestLostCollector(t *testing.T) {
	testsets.Once(t, "a run whose collector is killed", programFiles)
	more := testsets.More(t, programFiles)
	for i, row := range lostCollectors {
		if !more && i > 0 {
			break
		}
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.furnish(row.args + " telemetry serve")
			s.put("ROOT/agents.yaml", sender)
			p := s.begin("", s.arguments(row.args)...)
			p.bound = 4 * within // a hanging collector takes all time limits
			p.run(t)
			s.recorded("OUT", row.before)
			s.served(p, []string{"prony-home"})
			signalled(row.signal, "prony-home")(s, p)
			e := p.wait(t)
			e.check(t)
			if e.code != cli.Fine && e.code != cli.Invalid {
				t.Errorf("exit %d: %s", e.code, e.stderr)
			}
			s.tidy(p.cmd.Process.Pid)
			_, records, bad, err := record.Read(s.path("OUT"))
			if err != nil || len(bad) > 0 || len(records) != row.records {
				t.Fatalf("%d records, bad %v, error %v", len(records), bad, err)
			}
			report := s.try("", "report", s.path("OUT"))
			words := strings.Join(strings.Fields(report.stdout), " ")
			lost := 0
			for _, r := range records {
				if r.Outcome != record.Measured {
					t.Errorf("%s failed: %+v", r.Trial, r.Failure)
				}
				if r.Telemetry == nil {
					continue
				}
				lost++
				if r.Telemetry.Partial == "" {
					t.Errorf("the record of %s has telemetry %+v", r.Trial, r.Telemetry)
				}
				if !strings.Contains(words, r.Trial+" (") {
					t.Errorf("the report does not name %s: %s", r.Trial, report.stdout)
				}
			}
			if lost != row.lost || !strings.Contains(words, "Incomplete: ") {
				t.Errorf("%d records have telemetry, want %d: %s", lost, row.lost, report.stdout)
			}
			if !strings.Contains(e.stderr, "telemetry may be incomplete: ") ||
				!strings.Contains(e.stderr, row.says) {
				t.Errorf("it says %s, want %q", e.stderr, row.says)
			}
		})
	}
}
