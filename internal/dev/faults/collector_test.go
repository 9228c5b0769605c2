package faults

import (
	"strings"
	"syscall"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// observedRun measures one trial of a service, and then observes one.
const observedRun = "--root ROOT run --telemetry --targets go-two --blocks 1 --warmup 1s " +
	"--measure 4s --out OUT"

// A collector that is killed or hangs costs a run its telemetry: the results are there, and the
// output, the record and the report say what is missing.
func TestLostCollector(t *testing.T) {
	testsets.Once(t, "a run whose collector is killed", programFiles)
	more := testsets.More(t, programFiles)
	for i, row := range []struct {
		name    string
		records int // before the signal
		signal  syscall.Signal
		says    string
	}{
		{"killed in the observed trial", 1, syscall.SIGKILL, "signal: killed"},
		{"killed in the comparison", 0, syscall.SIGKILL, "signal: killed"},
		{"hangs in the observed trial", 1, syscall.SIGSTOP, "did not end within"},
	} {
		if !more && i > 0 {
			break
		}
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.furnish(observedRun + " telemetry serve")
			p := s.begin("", s.arguments(observedRun)...)
			p.bound = 4 * within // a hanging collector takes all time limits
			p.run(t)
			s.recorded("OUT", row.records)
			s.served(p, []string{"go-two", "prony-home"})
			signalled(row.signal, "prony-home")(s, p)
			e := p.wait(t)
			e.check(t)
			if e.code != cli.Fine && e.code != cli.Invalid {
				t.Errorf("exit %d: %s", e.code, e.stderr)
			}
			s.tidy(p.cmd.Process.Pid)
			_, records, bad, err := record.Read(s.path("OUT"))
			if err != nil || len(bad) > 0 || len(records) != 2 {
				t.Fatalf("%d records, bad %v, error %v", len(records), bad, err)
			}
			for _, r := range records {
				if r.Outcome != record.Measured {
					t.Errorf("%s failed: %+v", r.Trial, r.Failure)
				}
			}
			lost := records[1].Telemetry
			if lost == nil || lost.Partial == "" {
				t.Fatalf("the record has telemetry %+v", lost)
			}
			if !strings.Contains(e.stderr, "telemetry may be incomplete: ") ||
				!strings.Contains(e.stderr, row.says) {
				t.Errorf("it says %s, want %q", e.stderr, row.says)
			}
			report := s.try("", "report", s.path("OUT"))
			words := strings.Join(strings.Fields(report.stdout), " ")
			if !strings.Contains(words, "Incomplete: "+records[1].Trial) {
				t.Errorf("the report says %s", report.stdout)
			}
		})
	}
}
