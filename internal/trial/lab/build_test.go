package lab

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/internal/trial"
)

func TestBuildJobs(t *testing.T) {
	const gib = 1 << 30
	check := func(cores int, bytes int64, want int) {
		t.Helper()
		if got := buildJobs(cores, bytes); got != want {
			t.Errorf("%d cores and %d bytes: %d builds at once, want %d", cores, bytes, got, want)
		}
	}
	check(8, 64*gib, 9) // cores and one more
	check(8, 7*gib, 3)  // 2 GiB each
	check(8, gib, 1)
	check(8, 0, 1) // unknown
}

// slow makes builds that take time, and of which one fails.
type slow struct {
	running, most atomic.Int32
}

func (s *slow) build(_ context.Context, _ *service.Builder,
	x *service.Service) (*service.Built, error) {
	s.most.Store(max(s.most.Load(), s.running.Add(1)))
	time.Sleep(time.Second)
	s.running.Add(-1)
	if x.Name == "b" {
		return nil, errors.New("build b: no")
	}
	return &service.Built{Hash: x.Name}, nil
}

// A limited number in parallel, each outcome at its service's index, and one failure stops no
// other.
func TestBuildsSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slow{}
		var services Catalog
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			services = append(services, &service.Service{Name: name})
		}
		began := time.Now()
		out := BuildAll(t.Context(), w.build, nil, services, 2)
		if took := time.Since(began); took != 3*time.Second || w.most.Load() != 2 {
			t.Errorf("5 builds of 1 s took %v, %d at once; want 3 s, 2", took, w.most.Load())
		}
		for i, o := range out {
			if name := services[i].Name; name == "b" {
				if o.Err == nil {
					t.Error("b was built")
				}
			} else if o.Err != nil || o.Built.Hash != name {
				t.Errorf("%s: %+v", name, o)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for _, o := range BuildAll(ended, w.build, nil, services[:1], 1) {
			if o.Err == nil || !strings.Contains(o.Err.Error(), "interrupted") {
				t.Errorf("error %v", o.Err)
			}
		}
	})
}

// A system is six programs that start in turn.
func TestStartupGuess(t *testing.T) {
	s := &service.Service{Run: service.Run{Command: []string{"x"}}}
	one := startupGuess(s, service.Target{})
	s.Run.Processes = make([]service.Process, 6)
	if six := startupGuess(s, service.Target{}); one != time.Second || six != 48*time.Second {
		t.Errorf("one %v, six %v", one, six)
	}
}

// A variant of another build launches that build, a contained trial its image; a trial that lacks
// something has the reason, and the others have all that they need.
func TestResolve(t *testing.T) {
	bare := &service.Service{Name: "a", Targets: []service.Target{{Mode: "virtual"}}}
	other := &service.Service{Name: "a", Other: "otel", Targets: []service.Target{
		{Mode: "virtual", Runtime: "jvm"}}}
	s := &suite.Suite{Scenarios: []suite.Scenario{{Name: "read"}}, Variants: []suite.Variant{
		{Name: "twin", Build: "otel"}, {Name: "none such", Build: "x"}, {Name: "lost"}}}
	r := &run{planned: planned{plan: &suite.Plan{Suite: s}, catalog: Catalog{bare, other}},
		rides: map[string]ride{"lost": {lacking: errors.New("no such artifact")},
			"twin": {Ride: trial.Ride{Path: "/a.jar"}}}}
	made := built{
		artifacts: map[*service.Service]Outcome{bare: {Built: &service.Built{SHA256: "plain"}},
			other: {Built: &service.Built{SHA256: "twin"}}},
		images: map[*service.Service]Outcome{bare: {Built: &service.Built{SHA256: "image"}},
			other: {Err: errors.New("no such base")}},
	}
	check := func(launcher, variant, artifact, lacking string) {
		t.Helper()
		got := r.resolve(t.Context(), suite.Trial{Target: bare.Full(bare.Targets[0]),
			Scenario: "read", Variant: variant, Launcher: launcher}, made)
		if lacking != "" {
			if got.Lacking == nil || !strings.Contains(got.Lacking.Error(), lacking) {
				t.Errorf("%s %s lacks %v, want %q", launcher, variant, got.Lacking, lacking)
			}
			return
		}
		if got.Lacking != nil || got.Subject.Built.SHA256 != artifact ||
			(got.Ride.Path != "") != (variant == "twin") || got.With.Name != variant {
			t.Errorf("%s %s: %+v, want %s", launcher, variant, got, artifact)
		}
	}
	check("", "none", "plain", "")
	check("", "twin", "twin", "")
	check("docker", "none", "image", "")
	check("docker", "twin", "", "no such base")
	check("", "none such", "", `a has no build "x"`)
	check("", "lost", "", "no such artifact")
}
