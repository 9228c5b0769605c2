package doctor

import (
	"context"
	"strconv"
	"testing"
	"time"

	"prony.example/internal/observe/probe"
	"prony.example/record"
)

// ticks is /proc/stat after this many ticks: busy, stolen and all of them.
func ticks(busy, stolen, all int) tree {
	return tree{"proc/stat": "cpu  " + strconv.Itoa(busy) + " 0 0 " +
		strconv.Itoa(all-busy-stolen) + " 0 0 0 " + strconv.Itoa(stolen) + " 0 0"}
}

func quiet(t *testing.T, host tree, o Options, h ...happening) record.Before {
	t.Helper()
	o.Root = host.with(ticks(0, 0, 0)).write(t)
	o.senses = feel(t, o.Root, h...)
	return Quiet(t.Context(), o)
}

// A window of 200 ms on four cores has 80 ticks: one is 1.25 %.
func TestQuiet(t *testing.T) {
	check := func(name string, want record.Before, h ...happening) {
		t.Helper()
		host := tree{"proc/300/stat": process(300, "big", 100)}
		if got := quiet(t, host, Options{Bound: time.Second}, h...); got != want {
			t.Errorf("%s: %+v\nwant %+v", name, got, want)
		}
	}
	window := int64(200 * time.Millisecond)
	check("calm", record.Before{WindowNs: window, Quiet: true},
		happening{after: ticks(0, 0, 80)})
	// 8 ticks of 80 are 80 ms, all of this process.
	check("busy ourselves", record.Before{WindowNs: window, Quiet: true},
		happening{after: ticks(8, 0, 80), ownNs: 80_000_000})
	check("a tick stolen is no evidence",
		record.Before{WindowNs: window, StealShare: 0.0125, Quiet: true},
		happening{after: ticks(0, 1, 80)})
	check("others at their limit",
		record.Before{WindowNs: window, OtherCPUShare: 0.05, Quiet: true},
		happening{after: ticks(4, 0, 80)})
	check("one look more",
		record.Before{WindowNs: window, WaitedNs: window, Quiet: true,
			Reason: "the hypervisor took 2.5 % of the CPU time, other programs used 50.0 % of " +
				"the CPU time"},
		happening{after: ticks(40, 2, 80)}, happening{after: ticks(40, 2, 160)})
	// The second check also reads who it is: 40 of 80 ticks. The bound of 1 s is five windows.
	last := ticks(200, 0, 400).with(tree{"proc/300/stat": process(300, "big", 300)})
	check("until the bound",
		record.Before{WindowNs: window, WaitedNs: 4 * window, OtherCPUShare: 0.5,
			Reason: "other programs used 50.0 % of the CPU time (big 50.0 %)"},
		step(40, 80, 140), step(80, 160, 180), step(120, 240, 220), step(160, 320, 260),
		happening{after: last})
	check("a kernel that says nothing", record.Before{WindowNs: window, StealShare: -1,
		OtherCPUShare: -1, Reason: "the kernel does not report which programs use its CPUs"},
		happening{after: tree{"proc/stat": "nonsense"}})
}

// step is a window after which others have used this many ticks of all, and big its own number in
// all.
func step(busy, all, big int) happening {
	used := tree{"proc/300/stat": process(300, "big", big)}
	return happening{after: ticks(busy, 0, all).with(used)}
}

func TestQuietWaitsForCoolness(t *testing.T) {
	const zone = "sys/class/thermal/thermal_zone0/temp"
	count := ofCore(0, "thermal_throttle/core_throttle_count")
	b := quiet(t, tree{zone: "90000", count: "3"}, Options{},
		happening{after: ticks(0, 0, 80).with(tree{count: "4"})},
		happening{after: ticks(0, 0, 160)},
		happening{after: ticks(0, 0, 240).with(tree{zone: "60000"})})
	want := record.Before{WindowNs: 2e8, WaitedNs: 4e8, TemperatureC: 60, ThrottleEvents: 4,
		Quiet: true, Reason: "90 °C hot"}
	if b != want {
		t.Errorf("%+v\nwant %+v", b, want)
	}
}

func TestQuietEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	root := ticks(0, 0, 0).write(t)
	s := feel(t, root, happening{after: ticks(80, 0, 80)})
	waited := s.wait
	s.wait = func(ctx context.Context, d time.Duration) { waited(ctx, d); cancel() }
	b := Quiet(ctx, Options{Root: root, senses: s})
	if b.Quiet || b.WaitedNs != 0 || b.Reason == "" {
		t.Errorf("%+v, want one look that was not quiet", b)
	}
}

// The rule by itself.
func TestUnrest(t *testing.T) {
	check := func(s sight, want string) {
		t.Helper()
		if got := s.unrest(); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
	check(sight{steal: 0.01, otherShare: 0.05}, "")
	check(sight{steal: 0.0101}, "the hypervisor took 1.0 % of the CPU time")
	check(sight{otherShare: 0.0501}, "other programs used 5.0 % of the CPU time")
	check(sight{steal: 0.025, otherShare: 0.025, tick: 0.025}, "") // one tick
	check(sight{steal: 0.05, tick: 0.025}, "the hypervisor took 5.0 % of the CPU time")
	check(sight{throttledNow: -1, hottestC: 84.9}, "")
	check(sight{throttledNow: 2, hottestC: 85}, "the CPU was throttled because of heat 2 "+
		"times, 85 °C hot")
}

func TestBetweenNamesTheThreeBusiest(t *testing.T) {
	a := edge{ticks: probe.HostTicks{Total: 100}, processes: map[int]probe.Process{
		1: {Name: "old", CPUNs: 5e9}, 2: {Name: "reused", CPUNs: 5e9},
	}}
	b := edge{ticks: probe.HostTicks{Busy: 90, Total: 200}, processes: map[int]probe.Process{
		1: {Name: "old", CPUNs: 5e9 + 2e8}, 2: {Name: "reused", CPUNs: 3e8},
		3: {Name: "new", CPUNs: 1e8}, 4: {Name: "small", CPUNs: 1e7}, 5: {Name: "none", CPUNs: 0},
	}}
	// 100 ticks are 1 s: old used 0.2 s, reused started again and used 0.3 s, new 0.1 s.
	if got := between(a, b).names(); got != " (reused 30.0 %, old 20.0 %, new 10.0 %)" {
		t.Errorf("named are %q", got)
	}
}

// Events of throttling between two looks are known only if both know the number since boot.
func TestBetweenCountsThrottling(t *testing.T) {
	check := func(before, after, want int64) {
		t.Helper()
		got := between(edge{throttledN: before}, edge{throttledN: after})
		if got.throttledNow != want || got.throttledN != after {
			t.Errorf("from %d to %d: %+v, want %d", before, after, got, want)
		}
	}
	check(0, 0, 0)
	check(0, 3, 3)
	check(2, 5, 3)
	check(-1, 3, -1)
	check(3, -1, -1)
	check(-1, -1, -1)
}

// On this host, with any load: the check takes the requested time.
func TestQuietHere(t *testing.T) {
	o := Options{Window: 20 * time.Millisecond, Bound: 10 * time.Millisecond}
	b := Quiet(t.Context(), o)
	if b.WindowNs < int64(o.Window) || b.WaitedNs != 0 || b.StealShare < 0 || b.OtherCPUShare < 0 {
		t.Errorf("%+v", b)
	}
}
