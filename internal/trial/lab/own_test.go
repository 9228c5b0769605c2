package lab

import (
	"testing"
	"time"

	"prony.example/internal/suite/adhoc"
	"prony.example/internal/trial"
)

// TestServices makes a service of each source, with the longer of both bounds on its startup, and
// says nothing if there is nothing to say.
func TestServices(t *testing.T) {
	check := func(startup, bound time.Duration, ready, path string) {
		t.Helper()
		heard := &listener{}
		l := &Lab{Root: t.TempDir(), Tell: heard, AsMe: true}
		got, err := l.Services(t.Context(), []adhoc.Source{
			{Way: adhoc.Command("/bin/sleep 1"), Dir: l.Root},
			{Name: "second", Way: adhoc.Command("/bin/sleep 2"), Dir: l.Root, Again: true}},
			ready, startup)
		if err != nil || len(got) != 2 || len(heard.lines) > 0 {
			t.Fatalf("services %v, error %v, said %q", got, err, heard.lines)
		}
		for _, s := range got {
			if s.Run.Startup != bound || s.Run.Ready != path || !s.AsMe {
				t.Errorf("service %s: startup %v, ready %q, as me: %v", s.Name, s.Run.Startup,
					s.Run.Ready, s.AsMe)
			}
		}
	}
	check(0, trial.ReadyBound, "/ready", "/ready")
	check(2*trial.ReadyBound, 2*trial.ReadyBound, "-", "")
}
