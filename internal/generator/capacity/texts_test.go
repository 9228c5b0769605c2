package capacity

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

var update = flag.Bool("update", false, "write testdata/texts.txt")

// texts are searches with a name.
var texts = []struct {
	name, objectives string
	perS, noise      float64
	change           func(*server, *Options)
}{
	{"found", "p99<50ms", 1000, 0.05, func(*server, *Options) {}},
	{"noisy", "p99<50ms,p50<20ms", 400, 0.2, func(_ *server, o *Options) { o.CeilingPerS = 900 }},
	{"hysteresis", "p99<50ms", 1000, 0.05, func(s *server, o *Options) {
		s.sticky, o.Budget = 0.1, 3*time.Minute
	}},
	{"accidents", "p99<50ms", 1000, 0.05, func(s *server, _ *Options) { s.accident = 0.05 }},
	{"lowest", "p99<4ms", 1000, 0.05, func(*server, *Options) {}},
	{"late", "p99<50ms", 1000, 0.05, func(s *server, o *Options) {
		s.lateFrom, o.CeilingPerS = 700, 2000
	}},
	{"short", "p99<50ms", 1000, 0.05, func(_ *server, o *Options) { o.Budget = 20 * time.Second }},
	{"endless", "p99<50ms", 1000, 0.05, func(s *server, o *Options) {
		o.Offer = func(ctx context.Context, step Step) (*record.Load, error) {
			s.perS = max(1000, 100*step.RatePerS)
			return s.offer(ctx, step)
		}
	}},
}

// TestTexts checks all steps and texts of some searches and sweeps of simulated servers.
func TestTexts(t *testing.T) {
	var b strings.Builder
	lines := func(steps []Tried) {
		for _, step := range steps {
			fmt.Fprintf(&b, "%s (%v, %v)\n", step.Line(), step.Lead, step.Window)
		}
	}
	for _, x := range texts {
		s := newServer(7, x.perS, x.noise)
		o := s.options(x.objectives, 7)
		x.change(s, &o)
		f := find(t, s, o)
		fmt.Fprintf(&b, "== %s\n", x.name)
		if err := f.Text(&b); err != nil {
			t.Fatal(err)
		}
		lines(f.Steps)
		f.Steps = nil
		fmt.Fprintf(&b, "%.5g %.5g %.5g %.5g %.5g %.4g %+v\n", f.RatePerS, f.LoPerS, f.HiPerS,
			f.ReliablePerS, f.MetPerS, f.Width, f.Hysteresis)
	}
	s := newServer(7, 1000, 0.05)
	s.whole = true
	o := s.options("p99<50ms", 7)
	fmt.Fprintln(&b, "== curve")
	points, err := Curve(context.Background(), o, 900, []float64{0.1, 0.5, 0.9, 0.99, 1.2}, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := CurveText(&b, points); err != nil {
		t.Fatal(err)
	}
	rows, err := Concurrency(context.Background(), o, []int{1, 4, 64})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(&b, "== connections")
	lines(rows)
	if err := SweepText(&b, rows, nil); err != nil {
		t.Fatal(err)
	}
	rows, err = Stress(context.Background(), o, []float64{200, 500, 900, 950, 1100, 2000})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(&b, "== rates")
	lines(rows)
	if err := SweepText(&b, rows, o.SLO); err != nil {
		t.Fatal(err)
	}
	testsets.Golden(t, *update, "testdata/texts.txt", b.String())
}
