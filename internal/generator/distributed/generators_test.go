package distributed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/load"
	"prony.example/record"
)

// alone runs the load in one process.
func alone(t *testing.T, o Order) (res *load.Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var err error
		if res, err = pretend(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	})
	return res
}

// equalBins checks that the distributions of two results are equal.
func equalBins(t *testing.T, what string, got, want *load.Result) {
	t.Helper()
	for _, row := range []struct {
		name      string
		got, want record.Dist
	}{{"response", got.ResponseTime, want.ResponseTime},
		{"service", got.ServiceTime, want.ServiceTime}, {"lag", got.Lag, want.Lag}} {
		if row.got.HDR != row.want.HDR || row.got.Count == 0 {
			t.Errorf("%s: %s has other bins: %d and %d samples", what, row.name, row.got.Count,
				row.want.Count)
		}
	}
	for i := range want.Intervals {
		if !got.Intervals[i].Response.Equals(want.Intervals[i].Response) {
			t.Errorf("%s: interval %d differs", what, i)
		}
	}
	if !slices.Equal(got.Series.Done, want.Series.Done) ||
		!slices.Equal(got.Series.Scheduled, want.Series.Scheduled) {
		t.Errorf("%s: the course is another", what)
	}
}

// TestTogether checks that several generators send the whole schedule, and that their sum equals
// one process's result, to the bin.
func TestTogether(t *testing.T) {
	one := alone(t, scored(1000))
	for _, n := range []int{1, 2, 4} {
		inBubble(t, n, func(s *stage) {
			o := scored(1000)
			snapshots, answers, last := 0, int64(0), load.Progress{}
			o.Spec.Observer = load.ProgressFunc(func(p load.Progress) bool {
				snapshots++
				answers += p.Response.TotalCount()
				last = p
				return true
			})
			res, err := s.offer(o)
			if err = errors.Join(append(s.ends, err)...); err != nil {
				t.Fatal(err)
			}
			equalBins(t, fmt.Sprint(n), res, one)
			if res.TraceHash != one.TraceHash || res.Answered != one.Answered ||
				res.Scheduled != one.Scheduled || res.Threads != n {
				t.Errorf("%d generators: %d of %d answered, hash %s; want %d of %d, %s", n,
					res.Answered, res.Scheduled, res.TraceHash, one.Answered, one.Scheduled,
					one.TraceHash)
			}
			if snapshots < 3 || last.Totals.Done != last.Sent || answers != last.Sent ||
				last.Due != last.Sent || last.Sent <= one.Scheduled {
				t.Errorf("%d snapshots, the last %+v with %d answers", snapshots, last, answers)
			}
			if v := judged(res); v.Grade == record.Invalid {
				t.Errorf("%d generators: %+v", n, v)
			}
			if len(res.Generators) != n {
				t.Fatalf("%d generators are told of", len(res.Generators))
			}
			for i, g := range res.Generators {
				if g.Index != i || g.Fault != "" || g.Name != fmt.Sprint("g", i) || g.Sent == 0 {
					t.Errorf("generator %+v", g)
				}
			}
		})
	}
}

// TestReportsAreOptional checks that an observer gets reports only if the load has a time between
// them, and that its answer ends the load.
func TestReportsAreOptional(t *testing.T) {
	check := func(observed bool, every time.Duration, answer bool, calls int, want bool) {
		t.Helper()
		called := 0
		p := &offering{spec: load.Spec{Every: every},
			response: load.NewHistogram(), lag: load.NewHistogram()}
		if observed {
			p.spec.Observer = load.ProgressFunc(func(load.Progress) bool {
				called++
				return answer
			})
		}
		if got := p.show(); got != want || called != calls {
			t.Errorf("observed %v, every %v: %d reports, continues %v; want %d, %v", observed,
				every, called, got, calls, want)
		}
	}
	check(false, time.Second, false, 0, true)
	check(true, 0, false, 0, true)
	check(true, 1, false, 1, false)
	check(true, time.Second, true, 1, true)
}

// TestClocks checks that a constant clock offset has no effect, and that drift is reported.
func TestClocks(t *testing.T) {
	const second = int64(time.Second)
	check := func(skew func(began int64) (int64, int64), grade, words string) *load.Result {
		t.Helper()
		var res *load.Result
		inBubble(t, 2, func(s *stage) {
			began := clock.Mono()
			s.all[1].Skew = func() (int64, int64) { return skew(began) }
			var err error
			if res, err = s.offer(scored(500)); err != nil {
				t.Fatal(err)
			}
			g, observed := finding(judged(res), "clocks")
			if g != grade || !strings.Contains(observed, words) {
				t.Errorf("clocks %s %q, want %s %q", g, observed, grade, words)
			}
		})
		return res
	}
	res := check(func(int64) (int64, int64) { return second, second }, record.Valid,
		"generator 1 (g1): its wall clock is 1s off")
	c := res.Generators[1].Clock
	if c.OffsetNs != second || c.DriftNs != 0 || c.WallNs != second {
		t.Errorf("the clock is set %+v, want a second ahead", c)
	}
	if res.Generators[1].LateNs != 0 {
		t.Errorf("it began %d ns late: its clock was not taken into account",
			res.Generators[1].LateNs)
	}
	equalBins(t, "a second ahead", res, alone(t, scored(500)))
	step := func(by int64) func(int64) (int64, int64) { // after the load has started
		return func(began int64) (int64, int64) {
			if clock.Mono()-began > second {
				return by, 0
			}
			return 0, 0
		}
	}
	check(step(second), record.Invalid, "generator 1 (g1): its clock is up to 1s off")
	check(step(-5e6), record.Suspect, "generator 1 (g1): its clock is up to 5ms off")
}

// change modifies a stage and its order.
type change func(*stage, *Order)

// late makes a generator start later than agreed.
func late(by time.Duration) change {
	return func(_ *stage, o *Order) {
		together := o.Spec.Together
		o.Spec.Together = func(ctx context.Context) (int64, error) {
			at, err := together(ctx)
			time.Sleep(time.Duration(at-clock.Mono()) + o.Spec.Lead + by)
			return at, err
		}
	}
}

// TestFaults checks that a faulty generator makes the load INVALID and is named, and that the
// others' numbers are in the result.
func TestFaults(t *testing.T) {
	check := func(name, words string, odd change) {
		t.Helper()
		inBubble(t, 3, func(s *stage) {
			s.all[1].Offer = func(ctx context.Context, o Order) (*load.Result, error) {
				odd(s, &o)
				return pretend(ctx, o)
			}
			var said atomic.Int32
			s.lab.Say = func(line string) {
				if strings.Contains(line, "generator 1 (g1)") && strings.Contains(line, "INVALID") {
					said.Add(1)
				}
			}
			res, err := s.offer(scored(300))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			v := judged(res)
			grade, observed := finding(v, "generators")
			if v.Grade != record.Invalid || grade != record.Invalid ||
				!strings.HasPrefix(observed, "generator 1 (g1) ") ||
				!strings.Contains(observed, words) {
				t.Errorf("%s: %s %s %q, want %q", name, v.Grade, grade, observed, words)
			}
			if said.Load() != 1 {
				t.Errorf("%s: it was told %d times", name, said.Load())
			}
			if res.Answered == 0 || s.ends[0] != nil || s.ends[2] != nil {
				t.Errorf("%s: the others' numbers are lost: %v", name, s.ends)
			}
		})
	}
	check("is ended", "was ended: context canceled 0.7 s after", func(s *stage, o *Order) {
		o.Spec.Observer = load.Observers{o.Spec.Observer,
			load.ProgressFunc(func(load.Progress) bool { s.stop[1](); return true })}
	})
	check("dies", "disconnected 0.7 s after", func(s *stage, o *Order) {
		o.Spec.Observer = load.ProgressFunc(func(load.Progress) bool {
			return s.line[1].Close() == nil
		})
	})
	check("is late", "began 600ms late", late(600*time.Millisecond))
	check("is a little late", "began 101ms late", late(101*time.Millisecond))
	check("falls silent", "stopped responding 5.0 s after", func(_ *stage, o *Order) {
		together := o.Spec.Together
		o.Spec.Together = func(ctx context.Context) (int64, error) {
			at, err := together(ctx)
			<-ctx.Done() // when the lab gives up
			return at, err
		}
	})
	check("sends another schedule", "sent another schedule: its hash",
		func(_ *stage, o *Order) { o.Spec.Seed++ })
	check("never ends", "was still running 15s after its scheduled end,",
		func(_ *stage, o *Order) { o.Spec.Lead = time.Hour }) // with a valid number of intervals
}
