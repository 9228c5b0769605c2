package stalls

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

const period = int64(Period)

const (
	ms     = int64(1_000_000)
	us     = int64(1_000)
	origin = 7*ms + 345*us // of the grid
)

// strange returns causes of processes: 1 is the core's own, 2 and 3 are others, 9 is a kernel
// thread.
func strange(pid int32) (cause, name string) {
	switch pid {
	case 2, 3:
		return Process, fmt.Sprint("p", pid)
	case 9:
		return Kernel, "thread"
	}
	return "", ""
}

// grid returns ticks from..to of the grid, each 2 µs late, as on an idle core.
func grid(from, to int) (ticks []tick) {
	for k := from; k <= to; k++ {
		ticks = append(ticks, tick{ns: origin + int64(k)*period + 2*us, pid: 1})
	}
	return ticks
}

// reason returns cause and name of a stall, such as "process p2".
func reason(s Stall) string { return strings.TrimSpace(s.Cause + " " + s.Name) }

// text lists stalls with begin, end and least in µs after the grid's origin.
func text(all []Stall) string {
	var lines []string
	for _, s := range all {
		lines = append(lines, fmt.Sprintf("%d-%d least %d %s", (s.BeginNs-origin)/us,
			(s.EndNs-origin)/us, s.LeastNs/us, reason(s)))
	}
	return strings.Join(lines, "; ")
}

func TestJudge(t *testing.T) {
	check := func(name string, ticks []tick, s span, want string) {
		t.Helper()
		if got := text(judge(ticks, s, period, strange)); got != want {
			t.Errorf("%s:\n%s, want\n%s", name, got, want)
		}
	}
	ns := func(us0 int64, pid int32) tick { return tick{ns: origin + us0*us, pid: pid} }
	whole := span{origin, origin + 200*us, origin + 20*ms + 900*us}
	check("a healthy core", grid(1, 20), whole, "")
	check("an idle core", func() []tick {
		ticks := grid(1, 20)
		for i := range ticks {
			ticks[i].pid = 0
		}
		return ticks
	}(), whole, "")

	// Tick 6 comes at 8.7 instead of 6.002 ms, and the next one on time. The last sign of the core
	// running is tick 5.
	late := slices.Concat(grid(1, 5), []tick{ns(8700, 1)}, grid(9, 20))
	check("a late tick", late, whole, "5002-8700 least 2698 unknown")
	// 0.2 ms is on time, a µs more is late.
	check("a tick on time", slices.Concat(grid(1, 5), []tick{ns(6202, 1)}, grid(7, 20)), whole, "")
	check("a tick a little late", slices.Concat(grid(1, 5), []tick{ns(6203, 1)}, grid(7, 20)),
		whole, "5002-6203 least 201 unknown")
	// After a late tick the next one is also late: they are only 1.2 ms apart.
	twice := slices.Concat(grid(1, 5), []tick{ns(6700, 1), ns(7900, 1)}, grid(8, 20))
	check("two late ticks", twice, whole,
		"5002-6700 least 698 unknown; 6700-7900 least 898 unknown")
	// It comes just before the next one is due.
	check("late by a period", slices.Concat(grid(1, 5), []tick{ns(6995, 1)}, grid(7, 20)), whole,
		"5002-6995 least 993 unknown")

	// The first tick is late, and the core began to tick at 0.2 ms.
	check("late from the begin", slices.Concat([]tick{ns(3500, 1)}, grid(4, 20)), whole,
		"200-3500 least 2498 unknown")
	// The last one was due at 18.002 ms.
	check("late at the end", grid(1, 17), whole, "17002-20900 least 2898 unknown")
	check("no tick", nil, whole, "200-20900 least 0 unrecorded")
	check("no time for a tick", nil, span{origin, origin, origin + period + slack}, "")
	later := span{origin, origin + 4*ms, origin + 20*ms + 900*us}
	check("ticks before the begin", grid(1, 20), later, "")

	gap := slices.Concat(grid(1, 5), grid(10, 20))
	gap[5].gap = true
	check("a full ring", gap, whole, "5002-10002 least 0 unrecorded")

	run := func(pid int32, ticks ...int) []tick {
		all := grid(1, 20)
		for _, k := range ticks {
			all[k-1].pid = pid
		}
		return all
	}
	check("a process at one tick", run(2, 7), whole, "6002-8002 least 0 process p2")
	check("a process at three ticks", run(2, 7, 8, 9), whole, "6002-10002 least 2000 process p2")
	check("from the begin", run(3, 1, 2), whole, "200-3002 least 1000 process p3")
	check("to the end", run(3, 20), whole, "19002-20900 least 0 process p3")
	check("twice", run(3, 4, 6), whole,
		"3002-5002 least 0 process p3; 5002-7002 least 0 process p3")
	check("a thread of the kernel", run(9, 4), whole, "3002-5002 least 0 kernel thread")
	after := run(2, 4, 5)
	after[5].pid = 3
	check("one after the other", after, whole,
		"3002-6002 least 1000 process p2; 5002-7002 least 0 process p3")
}

// TestBoundsAreInOrder checks a buffer that fills between the end of a span and the next drain:
// ticks after the end and the time of that drain are outside of the span. A tick may also be a
// little earlier than the drain.
func TestBoundsAreInOrder(t *testing.T) {
	s := span{origin, origin + 200*us, origin + 20*ms}
	gap := tick{ns: s.end + 3*ms, gap: true}
	after := tick{ns: s.end + 5*us, pid: 2}
	check := func(name string, ticks []tick) {
		t.Helper()
		for _, x := range judge(ticks, s, period, strange) {
			if x.EndNs < x.BeginNs || x.LeastNs < 0 || x.LeastNs > x.EndNs-x.BeginNs {
				t.Errorf("%s: %+v", name, x)
			}
		}
	}
	check("a gap after the end", slices.Concat(grid(1, 19), []tick{after, gap}))
	before := tick{ns: gap.ns - us, pid: 2}
	check("a tick before the gap's", slices.Concat(grid(1, 19), []tick{after, gap, before}))
	inside := tick{ns: origin + 10*ms + 500*us, pid: 3, gap: true}
	for _, pid := range []int32{1, 2, 3} {
		early := tick{ns: inside.ns - us, pid: pid}
		check("a gap inside", slices.Concat(grid(1, 10), []tick{inside, early}, grid(11, 19)))
	}

	r := rand.New(rand.NewPCG(53, 0))
	for range 2000 {
		var ticks []tick
		for ns := s.begin; ns < s.end+4*ms; ns += r.Int64N(3 * ms) {
			ticks = append(ticks, tick{ns: ns, pid: int32(r.IntN(4)), gap: r.IntN(8) == 0})
		}
		check("random ticks", ticks)
	}
}

// TestJudgeFinds checks random histories of a core: stalls of the shortest length that Way names
// are found, their bounds hold, and nothing else is found.
func TestJudgeFinds(t *testing.T) {
	r := rand.New(rand.NewPCG(40, 0))
	for range 300 {
		base := r.Int64N(1 << 40)
		end := base + 300*ms
		// Actual stalls, at least 4 ms apart.
		var truth []pause
		for ns := base + r.Int64N(10*ms); ; ns += 4*ms + r.Int64N(40*ms) {
			length := period + slack + r.Int64N(8*ms)
			if ns+length+4*ms > end {
				break
			}
			truth = append(truth, pause{ns, ns + length})
			ns += length
		}
		var ticks []tick
		for due := base + r.Int64N(period); due < end; {
			ns := due + r.Int64N(20*us)
			for _, p := range truth {
				if p.begin <= ns && ns < p.end {
					ns = p.end + r.Int64N(20*us)
				}
			}
			ticks = append(ticks, tick{ns: ns, pid: 1})
			due += (floor(ns-due, period) + 1) * period
		}
		found := judge(ticks, span{base, base, end}, period, strange)
		if len(found) != len(truth) {
			t.Fatalf("%d stalls of %d were found", len(found), len(truth))
		}
		for i, s := range found {
			p := truth[i]
			length := p.end - p.begin
			if s.BeginNs > p.begin || s.EndNs < p.end || s.EndNs > p.end+20*us ||
				s.LeastNs > length+40*us || s.LeastNs < length-period-40*us {
				t.Fatalf("%d to %d (%d ns) was found as %+v", p.begin, p.end, length, s)
			}
		}
	}
}

// TestStrangersUnseen checks that a process at one tick stands for a period of such runs, and a
// process at more ticks for none.
func TestStrangersUnseen(t *testing.T) {
	ticks := grid(1, 10)
	ticks[2].pid, ticks[5].pid, ticks[6].pid = 2, 2, 2
	all := judge(ticks, span{origin, origin, origin + 10*ms + 900*us}, period, strange)
	if len(all) != 2 || all[0].UnseenNs != period || all[1].UnseenNs != 0 {
		t.Errorf("%+v", all)
	}
}

// TestUnseen checks that the estimate from recorded stalls equals the time of unrecorded ones, for
// lengths from 0.45 ms on.
func TestUnseen(t *testing.T) {
	for _, length := range []int64{slack + period/4, 500 * us, ms, ms + slack, 1500 * us, 2500 * us,
		7300 * us} {
		missed, estimate := int64(0), int64(0)
		const n = 1000
		for i := range int64(n) {
			before := period * (2*i + 1) / (2 * n) // from the stall's begin to the next point
			if late := length - before; late > slack {
				estimate += unseen(late, period)
			} else {
				missed += length
			}
		}
		if d := float64(estimate-missed) / n; d < -float64(10*us) || d > float64(10*us) {
			t.Errorf("stalls of %d ns: %d ns are missed on average, the estimate is %d", length,
				missed/n, estimate/n)
		}
	}
}

// TestMean checks that late ticks, each with its part, take as long as all stalls on average,
// recorded or not, for lengths from 0.45 ms on, also by a clock that ticks every 4 ms.
func TestMean(t *testing.T) {
	for _, period := range []int64{period, int64(SumPeriod)} {
		for _, length := range []int64{slack + period/4, period / 2, period, period + slack,
			3*period/2 + 7, 7 * period} {
			estimate := int64(0)
			const n = 1000
			for i := range int64(n) {
				// From the stall's begin to the next point of the grid.
				if late := length - period*(2*i+1)/(2*n); late > slack {
					estimate += mean(late, period)
				}
			}
			if d := estimate/n - length; d < -20*us || d > 20*us {
				t.Errorf("stalls of %d ns each %d ns: the estimate is %d", length, period,
					estimate/n)
			}
		}
	}
	ticks := grid(1, 10) // a process at three of ten ticks took a third of the time
	ticks[2].pid, ticks[5].pid, ticks[6].pid = 2, 2, 2
	sum := int64(0)
	for _, x := range judge(ticks, span{origin, origin, origin + 10*ms + 900*us}, period, strange) {
		sum += x.MeanNs
	}
	if sum != 3*period {
		t.Errorf("a process at three ticks took %d ns", sum)
	}
}

func TestLateCause(t *testing.T) {
	check := func(virtual bool, late, stolen int64, want string) {
		t.Helper()
		if got := lateCause(virtual, late, stolen); got != want {
			t.Errorf("%v, %d late, %d stolen: %s, want %s", virtual, late, stolen, got, want)
		}
	}
	check(false, 5*ms, 0, Kernel)
	check(true, 25*ms, 10*ms, Unknown)
	check(true, 20*ms, 10*ms, Hypervisor)
	check(true, 0, 0, Unknown)
}

func TestWayIsShown(t *testing.T) {
	const want = "perf event, stalls of at least 1.2 ms"
	if got := (Way{PerfEvent, period, period + slack}).String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTickCosts checks two clocks with a tick in ten units each; ticks of the second one are 3
// after those of the first.
func TestTickCosts(t *testing.T) {
	const unit = 10
	check := func(name string, pauseOf func(tick int64) []pause, want ...int64) {
		t.Helper()
		var ticks []tick
		var pauses []pause
		for ns := int64(0); ns < 4*8*unit+1; ns += unit {
			ticks = append(ticks, tick{ns: ns}, tick{ns: ns + 3})
			pauses = append(pauses, pauseOf(ns)...)
		}
		if got := tickCosts(ticks, pauses, unit); !slices.Equal(got, want) {
			t.Errorf("%s: ticks cost %v, want %v", name, got, want)
		}
	}
	check("apart", func(ns int64) []pause { return []pause{{ns, ns + 1}, {ns + 2, ns + 5}} },
		2, 2, 2, 2)
	check("in one pause", func(ns int64) []pause { return []pause{{ns, ns + 4}} }, 2, 2, 2, 2)
	check("dear at first", func(ns int64) []pause {
		if ns < 8*unit {
			return []pause{{ns, ns + 2}, {ns + 2, ns + 6}}
		}
		return []pause{{ns, ns + 1}, {ns + 2, ns + 5}}
	}, 2, 2, 2, 3)
	check("interrupted once", func(ns int64) []pause {
		if ns == 9*unit {
			return []pause{{ns, ns + 5}}
		}
		return []pause{{ns, ns + 4}}
	}, 2, 2, 2)
	check("a tick without a pause", func(ns int64) []pause {
		if ns == 9*unit {
			return nil
		}
		return []pause{{ns, ns + 4}}
	}, 2, 2, 2)
	if got := tickCosts(nil, nil, unit); got != nil {
		t.Errorf("no ticks cost %v", got)
	}
}

// TestJudgeBoth checks judgeBoth. The second clock ticks each 2 ms while the core is not idle, 0.5
// ms after the grid.
func TestJudgeBoth(t *testing.T) {
	whole := span{origin, origin + 200*us, origin + 20*ms + 900*us}
	busy := func(pid int32, from, to int) (ticks []tick) {
		for k := from; k <= to; k += 2 {
			ticks = append(ticks, tick{ns: origin + int64(k)*period + 500*us, pid: pid})
		}
		return ticks
	}
	check := func(name string, all, ran []tick, want string) {
		t.Helper()
		if got := text(judgeBoth(all, ran, whole, period, 2*period, strange)); got != want {
			t.Errorf("%s:\n%s, want\n%s", name, got, want)
		}
	}
	check("idle", grid(1, 20), nil, "")
	check("busy", grid(1, 20), busy(1, 1, 19), "")
	hole := slices.Concat(grid(1, 5), []tick{{ns: origin + 11700*us}}, grid(12, 20))
	check("the hypervisor, idle before", hole, nil, "5002-11700 least 5698 unknown")
	check("the hypervisor, busy before and after", hole,
		slices.Concat(busy(1, 1, 5), busy(1, 13, 19)), "5002-11700 least 5698 unknown")
	check("a process in the kernel", hole, busy(1, 1, 19), "")
	check("a process of others in the kernel", hole, slices.Concat(busy(1, 1, 3), busy(2, 5, 11),
		busy(1, 13, 19)), "3500-13500 least 6000 process p2")
	// A process of a higher priority also delays the first clock, whose bounds are closer.
	check("a process ahead", slices.Concat(grid(1, 5), []tick{{ns: origin + 7900*us}}, grid(8, 20)),
		slices.Concat(busy(1, 1, 5), busy(2, 7, 7), busy(1, 9, 19)),
		"5002-7900 least 1898 process p2")
	check("another one, idle before and after", grid(1, 20), busy(2, 9, 9),
		"7300-11700 least 0 process p2")
	check("two runs with an idle time between", grid(1, 20),
		slices.Concat(busy(2, 5, 5), busy(2, 11, 11)),
		"3300-7700 least 0 process p2; 9300-13700 least 0 process p2")
	lost := busy(1, 1, 19)
	lost[5].gap = true
	check("lost ticks", grid(1, 20), lost, "9500-11500 least 0 unrecorded")
}
