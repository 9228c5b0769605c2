package probe

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// These numbers exceed the kernel's largest PID, so that no clock of a real process is read.
const fakeParent, fakeWorker = 9000001, 9000002

func fakePIDs() []int { return []int{fakeWorker, fakeParent, fakeWorker, 9000009} } // one is gone

func v1Groups() []Group {
	return []Group{
		{Dir: "testdata/v1/cpuacct", Controller: "cpuacct", Version: 1},
		{Dir: "testdata/v1/cpu", Controller: "cpu", Version: 1},
		{Dir: "testdata/v1/memory", Controller: "memory", Version: 1},
	}
}

func v2Group(dir string) []Group { return []Group{{Dir: "testdata/" + dir, Version: 2}} }

// opened returns a sampler without its thread.
func opened(t testing.TB, cfg Config, subject Subject) *Sampler {
	t.Helper()
	s, err := open(cfg, subject)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

// fixtureMark returns the mark of testdata without CPU time and limits.
func fixtureMark() Mark {
	return Mark{
		Processes: 2, ThreadCount: 3, // 2 + 1
		Threads: []Thread{
			{fakeParent, 9000001, 11, 2, 1000000, 2000},
			{fakeParent, 9000003, 100, 30, 9000000, 70000},
			{fakeWorker, 9000002, 5, 1, 5000, 600},
		},
		RSSBytes:    1500 * pageBytes, // 1000 + 500
		PSSBytes:    3000 * 1024,      // the worker's is unreadable
		MajorFaults: 12,               // 3 + 4 of children, 5
		// busy 4825 + 10 + 2313 + 5 + 61; total adds idle 161995, iowait 437, steal 11.
		Host:     HostTicks{Busy: 7214, Steal: 11, Total: 169657},
		Pressure: Pressure{CPUUs: 10904571, MemoryUs: 400, IOUs: unknown}, // the io file is missing
		NetBytes: 12345678901, EnergyUJ: unknown,
	}
}

func TestMarkOfFixtures(t *testing.T) {
	check := func(name string, groups []Group, change func(*Mark)) {
		t.Helper()
		s := opened(t, Config{proc: "testdata/proc"}, Subject{PIDs: fakePIDs, Groups: groups})
		got := s.MarkPSS()
		if got.TNs < 0 || got.LabNs <= 0 {
			t.Errorf("%s: t %d, lab %d ns", name, got.TNs, got.LabNs)
		}
		want := fixtureMark()
		change(&want)
		got.TNs, got.LabNs = 0, 0
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
		}
	}
	v1 := func(m *Mark) {
		m.Source = "cgroup v1"
		m.CPUNs = 1234567890
		m.UserNs, m.SystemNs = 1e9, 230e6 // 100 and 23 ticks of 10 ms
		m.ThrottledPeriods, m.ThrottledNs = 7, 42000000
		m.ChargedBytes = 104857600
	}
	check("v1", v1Groups(), v1)
	check("v2", v2Group("v2"), func(m *Mark) {
		m.Source = "cgroup v2"
		m.CPUNs, m.UserNs, m.SystemNs = 1234567000, 1e9, 234567000 // µs
		m.ThrottledPeriods, m.ThrottledNs = 7, 42000000
		m.ChargedBytes = 104857600
	})
	check("v2 without controllers", v2Group("v2bare"), func(m *Mark) {
		m.Source = "cgroup v2"
		m.CPUNs, m.UserNs, m.SystemNs = 1234567000, 1e9, 234567000
		m.ThrottledPeriods, m.ThrottledNs, m.ChargedBytes = unknown, unknown, unknown
	})
	proc := func(m *Mark) {
		m.Source = "proc"
		m.UserNs = 1770e6  // 150 + 20 of children + 7 ticks
		m.SystemNs = 630e6 // 50 + 10 of children + 3
		m.CPUNs = 2400e6   // their sum, because no clock is readable
		m.ThrottledPeriods, m.ThrottledNs, m.ChargedBytes = unknown, unknown, unknown
	}
	check("proc", nil, proc)
	check("quota and memory alone", v1Groups()[1:], func(m *Mark) {
		proc(m)
		m.ThrottledPeriods, m.ThrottledNs, m.ChargedBytes = 7, 42000000, 104857600
	})
}

func TestMarkOfNothing(t *testing.T) {
	s := opened(t, Config{proc: t.TempDir()}, Subject{PIDs: fakePIDs})
	got := s.MarkPSS()
	got.TNs, got.LabNs = 0, 0
	want := Mark{
		Source: "proc", CPUNs: unknown, UserNs: unknown, SystemNs: unknown,
		ThrottledPeriods: unknown, ThrottledNs: unknown,
		RSSBytes: unknown, PSSBytes: unknown, ChargedBytes: unknown, MajorFaults: unknown,
		Host:     HostTicks{unknown, unknown, unknown},
		Pressure: Pressure{unknown, unknown, unknown}, NetBytes: unknown, EnergyUJ: unknown,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
	r := s.watch.step(7)
	if r.labNs <= 0 {
		t.Errorf("lab %d ns", r.labNs)
	}
	if r.labNs = 0; r != (row{tNs: 7}) {
		t.Errorf("sample of nothing: %+v", r)
	}
}

func TestMarkTellsPSSOnlyWhenAsked(t *testing.T) {
	s := opened(t, Config{proc: "testdata/proc"}, Subject{PIDs: fakePIDs})
	if got := s.Mark().PSSBytes; got != unknown {
		t.Errorf("PSS %d, want %d", got, unknown)
	}
}

func TestStartErrors(t *testing.T) {
	check := func(cfg Config, groups []Group, want string) {
		t.Helper()
		s, err := Start(cfg, Subject{Groups: groups})
		if err == nil {
			s.Stop()
			t.Fatalf("no error, want %q", want)
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q, want %q in it", err, want)
		}
	}
	missing := filepath.Join(t.TempDir(), "gone")
	check(Config{Period: 1}, nil, "the sampling period must be at least 1ms, got 1ns")
	check(Config{Cores: []int{-1}}, nil, "core -1: the core does not exist")
	check(Config{Cores: []int{1023}}, nil, "pin sampling thread to cores [1023]: invalid argument")
	check(Config{}, []Group{{Dir: missing, Version: 2}}, missing+": no such file")
	check(Config{}, []Group{{missing, "cpuacct", 1}}, missing+": no such file")
	check(Config{}, []Group{{"testdata/v1/cpu", "cpu,cpuacct", 1}}, "testdata/v1/cpu: no such file")
	check(Config{}, []Group{{Dir: "testdata/v2"}}, "cgroup version 0 is unknown; supported are 1 "+
		"and 2")
	check(Config{}, append(v1Groups(), v2Group("v2")...), "cannot be combined")
}
