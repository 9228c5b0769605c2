package doctor

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/observe/stalls"
	"prony.example/record"
)

// measuring checks the result of a rule on the lab's machine after a happening.
func measuring(t *testing.T) func(rule, grade, observed string, h happening) {
	k := keep(t, lab().with(tree{
		"proc/300/stat": process(300, "big", 5000), "proc/301/stat": process(301, "small", 9),
		"proc/77/stat": process(77, "prony", 9),
	}))
	return func(rule, grade, observed string, h happening) {
		t.Run(rule+" "+observed, func(t *testing.T) {
			c := find(t, k.examine(t, nil, h), rule)
			if c.Grade != grade || c.Observed != observed {
				t.Errorf("%s: %q, want %s: %q", c.Grade, c.Observed, grade, observed)
			}
		})
	}
}

// 400 ticks in the window each time, of which 4 are 1 %.
func TestOthersAreMeasured(t *testing.T) {
	check := measuring(t)
	stat := func(text string) happening {
		return happening{after: tree{"proc/stat": "cpu  " + text}}
	}
	const ever = " of CPU time now, 0.0 % since boot" // 41 of 100400 at most
	check("steal", record.Fit, "1.0 %"+ever, stat("1000 0 1000 98396 0 0 0 4 0 0"))
	check("steal", record.Doubtful, "1.2 %"+ever, stat("1000 0 1000 98395 0 0 0 5 0 0"))
	check("steal", record.Doubtful, "10.0 %"+ever, stat("1000 0 1000 98360 0 0 0 40 0 0"))
	check("steal", record.Unfit, "10.2 %"+ever, stat("1000 0 1000 98359 0 0 0 41 0 0"))
	check("steal", record.Unknown, "the kernel does not report it", stat("nonsense"))

	// 21 ticks are busy (210 ms); without this process's 10 ms, 20/400.
	own := stat("1021 0 1000 98379 0 0 0 0 0 0")
	own.ownNs = 10_000_000
	check("other load", record.Fit, "5.0 %", own)
	check("other load", record.Doubtful, "5.2 %", stat("1021 0 1000 98379 0 0 0 0 0 0"))
	check("other load", record.Doubtful, "25.0 %", stat("1100 0 1000 98300 0 0 0 0 0 0"))
	// Of 101 ticks big used 60, a new process 30; small used 1, below half a percent; 77 is this
	// process.
	named := stat("1101 0 1000 98299 0 0 0 0 0 0")
	named.after["proc/300/stat"] = process(300, "big", 5060)
	named.after["proc/301/stat"] = process(301, "small", 10)
	named.after["proc/302/stat"] = process(302, "new (1)", 30)
	named.after["proc/77/stat"] = process(77, "prony", 99)
	check("other load", record.Unfit, "25.2 % (big 15.0 %, new (1) 7.5 %)", named)
	check("other load", record.Unknown, "the kernel does not report it", stat("nonsense"))
}

func TestTheRestIsMeasured(t *testing.T) {
	check := measuring(t)
	hot := happening{after: idle.after.with(nil)}
	hot.after[ofCore(2, "thermal_throttle/core_throttle_count")] = "3"
	check("throttling", record.Unfit, "3 throttling events during the check", hot)
	check("throttling", record.Fit, "no throttling event since boot", idle)

	// Of 200, the 100th and the 198th decide: ranks ⌈0.5·200⌉ and ⌈0.99·200⌉.
	late := func(of100, of198 int64) happening {
		h := happening{after: idle.after, late: make([]int64, 200)}
		for i := range h.late {
			h.late[i] = of198
			if i < 100 {
				h.late[i] = of100
			}
		}
		h.late[198], h.late[199] = 9e6, 9e6
		slices.Reverse(h.late) // in any order
		return h
	}
	check("wake-ups", record.Fit, "sleeps end 40 µs late at p50, 250 µs late at p99",
		late(40e3, 250e3))
	check("wake-ups", record.Doubtful, "sleeps end 40 µs late at p50, 251 µs late at p99",
		late(40e3, 251e3))
	check("wake-ups", record.Doubtful, "sleeps end 999 µs late at p50, 3000 µs late at p99",
		late(999e3, 3000e3))
	check("wake-ups", record.Unfit, "sleeps end 1000 µs late at p50, 3000 µs late at p99",
		late(1000e3, 3000e3))
	none := happening{after: idle.after, late: []int64{}}
	check("wake-ups", record.Unknown, "not measured", none)

	// Of ten, the first, the fifth and the ninth decide.
	reads := func(ns ...float64) happening {
		return happening{after: idle.after, reads: ns}
	}
	check("shared cache", record.Fit, "time of a read: 20.0 ns at p10, 21.0 ns at p50, 22.0 ns "+
		"at p90",
		reads(99, 22.0, 22, 22, 22, 21, 21, 21, 21, 20))
	check("shared cache", record.Doubtful, "time of a read: 20.0 ns at p10, 21.0 ns at p50, "+
		"22.2 ns at p90",
		reads(99, 22.2, 22, 22, 22, 21, 21, 21, 21, 20))
	check("shared cache", record.Unknown, "not measured", reads([]float64{}...))

	check("cgroups", record.Doubtful, "v2, no group for cpuset, cpu, memory", happening{ro: true})
}

func TestStallsAreMeasured(t *testing.T) {
	check := measuring(t)
	event := stalls.Way{Name: stalls.PerfEvent, ShortestNs: 1.2e6}
	stall := func(way stalls.Way, share float64, err error) happening {
		return happening{after: idle.after, stall: &stallRecord{way, share, err}}
	}
	const again = "end other programs, and run prony doctor again"
	check("stalls", record.Fit, "perf event, stalls of at least 1.2 ms, 3.0 % of a core",
		stall(event, 0.03, nil))
	check("stalls", record.Fit, "perf event and heartbeat, stalls of at least 1.2 ms, 2.6 % of a "+
		"core", stall(stalls.Way{Name: stalls.Heartbeat, ShortestNs: 1.2e6}, 0.026, nil))
	check("stalls", record.Doubtful, "perf event, stalls of at least 1.2 ms, 3.1 % of a core",
		stall(event, 0.031, nil))
	check("stalls", record.Doubtful, "perf event, stalls of at least 1.2 ms, cost unknown: "+
		errEvent.Error(), stall(event, 0, errEvent))
	none := stalls.Way{}
	check("stalls", record.Doubtful, "stalls are not recorded: "+errEvent.Error(),
		stall(none, 0, errEvent))
	check("stalls", record.Doubtful, "stalls are not recorded: "+errEvent.Error()+"; "+
		errEvent.Error(), stall(none, 0, errors.Join(errEvent, errEvent)))
	check("stalls", record.Unknown, "not measured: the cores are unknown",
		stall(none, 0, errNoCore))

	fix := func(err error, want string) {
		t.Helper()
		m := &machine{stalls: stallRecord{err: fmt.Errorf("core 1: %w", err)}}
		if f := stallsRule(m); f.grade != record.Doubtful || f.fix != want {
			t.Errorf("%v: %s, %q, want %q", err, f.grade, f.fix, want)
		}
	}
	const capability = `run prony as root, or: as root: setcap cap_perfmon,cap_sys_nice+ep ` +
		`"$(command -v prony)"`
	fix(unix.EACCES, capability)
	fix(unix.EPERM, capability)
	fix(unix.ENOSYS, "use a machine whose kernel has perf events; here, response times include "+
		"the machine's stalls")
	if f := stallsRule(&machine{stalls: stallRecord{way: event, share: 0.04}}); f.fix != again {
		t.Errorf("a price of 4 %%: %q", f.fix)
	}
}

// A round visits every place once; otherwise less memory is read than intended.
func TestWander(t *testing.T) {
	const n = 1000
	next, seen := round(n), map[uint32]bool{}
	for at := uint32(0); !seen[at]; at = next[at] {
		seen[at] = true
	}
	if len(seen) != n {
		t.Errorf("a round has %d places of %d", len(seen), n)
	}
	took := wander(3, time.Microsecond, 4*n)
	if len(took) != 3 || slices.Min(took) <= 0 {
		t.Errorf("walks of %v ns a read", took)
	}
}
