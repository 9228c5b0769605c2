package probe

import (
	"reflect"
	"testing"

	"prony.example/record"
)

// edges returns two marks 2 s apart, which test rows change.
func edges() (a, b Mark) {
	a = Mark{
		TNs: 1e9, Source: "cgroup v1", CPUNs: 5e9, UserNs: 3e9, SystemNs: 2e9,
		ThrottledPeriods: 10, ThrottledNs: 100e6,
		Processes: 1, ThreadCount: 10,
		Threads:  []Thread{{7, 7, 100, 20, 4e9, 50e6}, {7, 8, 1000, 200, 1e9, 10e6}},
		RSSBytes: 100 << 20, PSSBytes: unknown, MajorFaults: 3,
		LabNs:    1e9,
		Host:     HostTicks{Busy: 1000, Steal: 10, Total: 5000},
		Pressure: Pressure{CPUUs: 1000, MemoryUs: 500, IOUs: unknown},
		NetBytes: 1000,
	}
	b = Mark{
		TNs: 3e9, Source: "cgroup v1", CPUNs: 6e9, UserNs: 3.5e9, SystemNs: 2.4e9,
		ThrottledPeriods: 14, ThrottledNs: 160e6,
		Processes: 1, ThreadCount: 12,
		Threads:  []Thread{{7, 7, 150, 25, 4.6e9, 60e6}, {7, 9, 40, 5, 0.4e9, 2e6}},
		RSSBytes: 120 << 20, PSSBytes: 90 << 20, MajorFaults: 5,
		LabNs:    1.5e9,
		Host:     HostTicks{Busy: 1190, Steal: 18, Total: 5400},
		Pressure: Pressure{CPUUs: 201000, MemoryUs: 500, IOUs: unknown},
		NetBytes: 41000,
	}
	return a, b
}

func edgesBetween() (record.Usage, record.Host) {
	return record.Usage{
			Source: "cgroup v1", WindowNs: 2e9,
			CPUNs: 1e9, UserNs: 0.5e9, SystemNs: 0.4e9,
			CPUPerRequestNs: 1e6,        // 1 s / 1000 requests
			CPUShare:        0.25,       // 1 s of 2 s * 2 cores
			RSSMaxBytes:     130 << 20,  // of the sample at 2.5 s; 500 MiB is outside of the window
			RSSEndBytes:     120 << 20,  // of b
			PSSEndBytes:     90 << 20,   // of b
			ThreadsMax:      13,         // of the sample at 1.5 s
			ThrottledNs:     60e6,       // 160 - 100
			SwitchesForced:  5 + 5,      // thread 7: 25 - 20; 9, new: 5; 8, ended: lost
			RunDelayNs:      10e6 + 2e6, // likewise
			NetworkBytes:    40000,      // 41000 - 1000
			PageFaultsMajor: 2,          // 5 - 3

			SwitchesVoluntary: 50 + 40, SwitchesPerRequest: 0.1, // (90 + 10) / 1000
			ThrottledPeriods: 4, NetworkBytesPerRequest: 40,
		}, record.Host{
			StealShare:    0.02, // 8 of 400 ticks
			OtherCPUShare: 0.1,  // 1.9 s busy - 1 s service - 0.5 s lab, of 4 s
			PressureCPU:   0.1,  // 200 ms of 2 s
			PressureIO:    unknown,
		}
}

func edgesSeries() Series {
	return Series{
		Every:    1,
		TNs:      []int64{0.9e9, 1.5e9, 2.5e9, 3.1e9},
		RSSBytes: []int64{500 << 20, 110 << 20, 130 << 20, 500 << 20},
		Threads:  []int64{99, 13, 11, 99},
	}
}

func TestBetween(t *testing.T) {
	const requests, cores = 1000, 2
	check := func(name string, change func(a, b *Mark, s *Series),
		expect func(*record.Usage, *record.Host)) {
		t.Helper()
		a, b := edges()
		samples := edgesSeries()
		usage, host := edgesBetween()
		if change != nil {
			change(&a, &b, &samples)
			expect(&usage, &host)
		}
		gotUsage, gotHost := Between(a, b, samples, requests, cores)
		if !reflect.DeepEqual(gotUsage, usage) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, gotUsage, usage)
		}
		if !reflect.DeepEqual(gotHost, host) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, gotHost, host)
		}
	}
	check("as it is", nil, nil)
	check("trial above busy", func(a, b *Mark, _ *Series) { b.LabNs += 2e9 },
		func(_ *record.Usage, h *record.Host) { h.OtherCPUShare = 0 }) // 1.9 - 1 - 2.5 < 0
	check("merged rows", func(_, _ *Mark, s *Series) { s.Every = 2 },
		func(u *record.Usage, _ *record.Host) {
			u.ThreadsMax = 12 // the row to 1.5 s begins at 0.9 s, before a, so the next one counts
		})
	check("samples at the marks", func(_, _ *Mark, s *Series) {
		s.TNs = []int64{1e9 - 1, 1e9, 3e9, 3e9 + 1}
	}, func(*record.Usage, *record.Host) {})
	check("no samples", func(_, _ *Mark, s *Series) { *s = Series{} },
		func(u *record.Usage, _ *record.Host) { u.RSSMaxBytes, u.ThreadsMax = 120<<20, 12 })
	check("PSS not asked for", func(_, b *Mark, _ *Series) { b.PSSBytes = unknown },
		func(u *record.Usage, _ *record.Host) { u.PSSEndBytes = 0 })
	check("counters stepped back", func(_, b *Mark, _ *Series) { b.CPUNs, b.NetBytes = 4e9, 0 },
		func(u *record.Usage, h *record.Host) {
			u.CPUNs, u.CPUShare, u.CPUPerRequestNs = 0, 0, 0
			u.NetworkBytes, u.NetworkBytesPerRequest = 0, 0
			h.OtherCPUShare = 0.35 // (1.9 - 0 - 0.5) / 4
		})
	check("reused thread number", func(_, b *Mark, _ *Series) {
		b.Threads = []Thread{{7, 7, 150, 25, 4.6e9, 60e6}, {7, 8, 40, 5, 0.4e9, 2e6}}
	}, func(*record.Usage, *record.Host) {}) // 40 < 1000: 8 is new and counts completely, like 9
	check("no schedstat", func(a, b *Mark, _ *Series) {
		a.Threads, b.Threads = []Thread{{7, 7, 100, 20, 0, 0}}, []Thread{{7, 7, 190, 30, 0, 0}}
	}, func(u *record.Usage, _ *record.Host) { u.RunDelayNs = unknown })
	check("shorter than a tick", func(a, b *Mark, _ *Series) { b.Host = a.Host },
		func(_ *record.Usage, h *record.Host) { h.StealShare, h.OtherCPUShare = unknown, unknown })
	check("another machine's", func(a, b *Mark, s *Series) {
		a.Processes, b.Processes, *s = 0, 0, Series{} // the host's traffic is not its own
	}, func(u *record.Usage, _ *record.Host) {
		u.RSSMaxBytes, u.ThreadsMax, u.NetworkBytes, u.NetworkBytesPerRequest = -1, -1, -1, -1
	})
	check("service gone", func(_, b *Mark, _ *Series) {
		b.CPUNs, b.UserNs, b.SystemNs, b.Threads, b.ThreadCount = unknown, unknown, unknown, nil, 0
		b.RSSBytes, b.MajorFaults = unknown, unknown
		b.ThrottledNs, b.ThrottledPeriods = unknown, unknown
	}, func(u *record.Usage, h *record.Host) {
		u.CPUNs, u.UserNs, u.SystemNs, u.CPUShare, u.CPUPerRequestNs = -1, -1, -1, -1, -1
		u.RSSEndBytes, u.PageFaultsMajor, u.ThrottledNs, u.ThrottledPeriods = -1, -1, -1, -1
		u.SwitchesVoluntary, u.SwitchesForced, u.SwitchesPerRequest, u.RunDelayNs = -1, -1, -1, -1
		h.OtherCPUShare = -1
	})
}

// TestBetweenLost checks that all values are unknown if a mark is lost.
func TestBetweenLost(t *testing.T) {
	a, b := edges()
	for _, lose := range []*Mark{&a, &b} {
		whole := *lose
		*lose = Mark{Lost: true, TNs: whole.TNs, Source: whole.Source}
		use, host := Between(a, b, Series{}, 1000, 2)
		v := reflect.ValueOf(use)
		for i := range v.NumField() {
			name, f := v.Type().Field(i).Name, v.Field(i)
			switch {
			case name == "WindowNs" || name == "PSSEndBytes" || f.Kind() == reflect.String:
			case f.CanInt() && f.Int() != unknown, f.CanFloat() && f.Float() != unknown,
				f.Kind() == reflect.Slice && f.Len() > 0, f.Kind() == reflect.Pointer && !f.IsNil():
				t.Errorf("%s is %v", name, f)
			}
		}
		if use.WindowNs != b.TNs-a.TNs || host.OtherCPUShare != unknown || host.EnergyJ != 0 {
			t.Errorf("%+v, %+v", use, host)
		}
		*lose = whole
	}
}

func TestBetweenWithoutRequests(t *testing.T) {
	a, b := edges()
	u, _ := Between(a, b, Series{}, 0, 2)
	if u.CPUPerRequestNs != 0 || u.SwitchesPerRequest != 0 || u.NetworkBytesPerRequest != 0 {
		t.Errorf("per request without requests: %+v", u)
	}
}

func TestBetweenPanics(t *testing.T) {
	check := func(name string, a, b Mark) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%s: no panic", name)
			}
		}()
		Between(a, b, Series{}, 0, 1)
	}
	a, b := edges()
	check("swapped", b, a)
	check("twice the same", a, a)
	b.Source = "proc"
	check("two samplers", a, b)
}

func TestCovered(t *testing.T) {
	check := func(name string, want float64, change func(a, b *Mark)) {
		t.Helper()
		a, b := edges()
		change(&a, &b)
		if got := covered(a, b); got != want {
			t.Errorf("%s: covered %v, want %v", name, got, want)
		}
	}
	// Thread 7 ran 4.6 - 4 = 0.6 s and the new 9 0.4 s of the service's 1 s.
	check("as it is", 1, func(_, _ *Mark) {})
	check("ended thread", 0.6, func(_, b *Mark) { b.Threads = b.Threads[:1] })
	check("idle", unknown, func(a, b *Mark) { b.CPUNs = a.CPUNs })
	check("gone", unknown, func(_, b *Mark) { b.Threads = nil })
}

// covered returns the share of the service's CPU time between two marks that threads alive at b
// account for: 1 if no thread ended in between, so that switches and run delay are complete; -1 if
// unknown. It may exceed 1 by time between the readings of a mark.
func covered(a, b Mark) float64 {
	cpu := delta(a.CPUNs, b.CPUNs)
	run := difference(a.Threads, b.Threads).RunNs
	if cpu <= 0 || run < 0 {
		return unknown
	}
	return float64(run) / float64(cpu)
}
