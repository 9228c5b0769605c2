package wording

import (
	"encoding/json"
	"testing"

	"prony.example/record"
)

func TestLimit(t *testing.T) {
	check := func(want string, l record.Limit) {
		t.Helper()
		if got := Limit(l); got != want {
			t.Errorf("%+v is %q, want %q", l, got, want)
		}
	}
	check("affinity 0,1", record.Limit{Kind: record.LimitCores, By: record.ByAffinity,
		Cores: []int{0, 1}})
	check("db: cpuset 0-2,5 (cgroup v2)", record.Limit{Kind: record.LimitCores,
		By: record.ByCgroup2, Cores: []int{0, 1, 2, 5}, Process: "db"})
	check("cpu quota 0.5 (cgroup v1)", record.Limit{Kind: record.LimitCPU, By: record.ByCgroup1,
		Value: 0.5})
	check("memory 34359738368 (cgroup v2)", record.Limit{Kind: record.LimitMemory,
		By: record.ByCgroup2, Value: 32 << 30})
	check("private memory 4096 (rlimit)", record.Limit{Kind: record.LimitMemory,
		By: record.ByRlimit, Value: 4096})
	check("attached: as it was started", record.Limit{Kind: record.LimitOwners, By: record.ByHere})
	check("attached: another machine's, as it was started",
		record.Limit{Kind: record.LimitOwners, By: record.ByAway})
	check("as it was", record.Limit{Kind: record.LimitCPU, By: record.ByCgroup1, Text: "as it was"})
}

func TestUnenforcedLimit(t *testing.T) {
	check := func(want string, l record.Limit, reason, detail string) {
		t.Helper()
		if got := Limit(record.Unenforced(l, reason, detail)); got != want {
			t.Errorf("%+v is %q, want %q", l, got, want)
		}
	}
	cpu := record.Limit{Kind: record.LimitCPU, Value: 0.5}
	memory := record.Limit{Kind: record.LimitMemory, Value: 4096}
	check("0.5 CPUs", cpu, "", "")
	check("0.5 CPUs: cpu.max: denied", cpu, record.Refused, "cpu.max: denied")
	check("0.5 CPUs for the system as a whole: each container has this limit by itself: systemd",
		cpu,
		record.PerContainer, "systemd")
	check("memory 4096 for the system as a whole: each container has a share of this limit: "+
		"systemd",
		memory, record.PerContainer, "systemd")
	check("memory 4096: the process ended before its limits could be read",
		memory, record.EndedBefore, "")
	check("memory 4096: the container's control groups are not mounted here", memory,
		record.NotMounted, "")
	check("cores [0 1]: no", record.Limit{Kind: record.LimitCores, Cores: []int{0, 1}},
		record.Refused, "no")
	swap := record.Limit{Kind: record.LimitSwap}
	check("no swap: the kernel does not count it", swap, record.NotCounted, "")
	check("no swap: the node allows pods to swap", swap, record.Permitted, "")
	check("db: control group: processes [7 8] are in another control group", record.Limit{
		Kind: record.LimitGroup, PIDs: []int{7, 8}, Process: "db"}, record.Strayed, "")
}

// TestLimitsOfVersion1 checks that texts of version 1 are printed unchanged, and that their kinds
// equal those of newer records.
func TestLimitsOfVersion1(t *testing.T) {
	check := func(text, kind string) {
		t.Helper()
		b, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var l record.Limit
		if err := json.Unmarshal(b, &l); err != nil {
			t.Fatal(err)
		}
		if Limit(l) != text || LimitKind(l) != kind {
			t.Errorf("%q is %q, of kind %q; want %q", text, Limit(l), LimitKind(l), kind)
		}
	}
	check("affinity 0,1", "affinity")
	check("db: cpuset 1 (cgroup v1)", "db: cpuset (cgroup v1)")
	check("memory 4096 (cgroup v2)", "memory (cgroup v2)")
	check("cpu quota 0.5 (cgroup v1)", "cpu quota (cgroup v1)")
	check("attached: as it was started", "attached: as it was started")
}
