package record

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// The limits of version 1 were sentences. Their values are parsed, and the texts are kept.
func TestLimitsOfVersion1(t *testing.T) {
	check := func(text string, want Limit) {
		t.Helper()
		b, err := json.Marshal([]string{text})
		if err != nil {
			t.Fatal(err)
		}
		var got []Limit
		want.Text = text
		if err := json.Unmarshal(b, &got); err != nil || !reflect.DeepEqual(got, []Limit{want}) {
			t.Errorf("%s is %+v, %v; want %+v", text, got, err, want)
		}
	}
	check("affinity 0,1", Limit{Kind: LimitCores, By: ByAffinity, Cores: []int{0, 1}})
	check("affinity [0 1]", Limit{Kind: LimitCores, By: ByAffinity, Cores: []int{0, 1}})
	check("cpuset 0-2,5 (cgroup v1)",
		Limit{Kind: LimitCores, By: ByCgroup1, Cores: []int{0, 1, 2, 5}})
	check("cpu quota 0.5 (cgroup v2)", Limit{Kind: LimitCPU, By: ByCgroup2, Value: 0.5})
	check("memory 268435456 (cgroup v1)", Limit{Kind: LimitMemory, By: ByCgroup1, Value: 1 << 28})
	check("db: private memory 1048576 (rlimit)",
		Limit{Kind: LimitMemory, By: ByRlimit, Value: 1 << 20, Process: "db"})
	check("cores [0 1]: no", Limit{Kind: LimitCores, By: ByNone})
	check("db: 0.5 CPUs: no", Limit{Kind: LimitCPU, By: ByNone, Process: "db"})
	check("memory 1048576", Limit{Kind: LimitMemory, By: ByNone})
	check("no swap: the node lets pods swap", Limit{Kind: LimitSwap, By: ByNone})
	strayed := "control group: processes [7] are in another one"
	check(strayed, Limit{Kind: LimitGroup, By: ByNone, Reason: Strayed})
	if !HasStrayed([]Limit{limitOfText("memory 1048576"), limitOfText(strayed)}) {
		t.Error("processes that strayed in version 1 are not known")
	}
	check("attached: as it was started", Limit{})
	check("cpuset 9999999999999999999 (cgroup v1)", Limit{Kind: LimitCores, By: ByCgroup1})
}

// The load that a rate refers to is parsed from records of version 1.
func TestRateBaseOfVersion1(t *testing.T) {
	check := func(rateOf, want string) {
		t.Helper()
		dir := t.TempDir()
		line := `{"version":1,"trial":"t","run":"r","loads":[{"rateOf":"` + rateOf + `"}]}` + "\n"
		if err := os.WriteFile(filepath.Join(dir, RunFile), []byte(`{"version":1,"id":"r"}`),
			0o644); err != nil {
			t.Fatal(err)
		}
		records, bad := reread(t, dir, []byte(line))
		if len(bad) > 0 || len(records) != 1 || records[0].Loads[0].RateBase != want {
			t.Errorf("%s: %+v, bad %v; want %q", rateOf, records, bad, want)
		}
	}
	check("50% of peak", "peak")
	check("ramp 10..90 in 30s % of capacity", "capacity")
	check("", "")
}

// Records of duets, a removed feature, are read like those of trials that ran alone.
func TestRecordOfADuet(t *testing.T) {
	dir := t.TempDir()
	head := `{"version":1,"id":"r","duet":true,"trials":["b1-01-a","b1-02-b"]}`
	if err := os.WriteFile(filepath.Join(dir, RunFile), []byte(head), 0o644); err != nil {
		t.Fatal(err)
	}
	lines := `{"version":1,"run":"r","trial":"b1-01-a","block":1,"outcome":"measured",` +
		`"duet":{"with":"b1-02-b","side":"left","shared":false,"skewNs":-2000}}` + "\n" +
		`{"version":1,"run":"r","trial":"b1-02-b","block":1,"outcome":"measured",` +
		`"duet":{"with":"b1-01-a","side":"right","shared":false,"skewNs":2000}}` + "\n"
	records, bad := reread(t, dir, []byte(lines))
	if len(bad) > 0 || len(records) != 2 || records[0].Block != 1 || records[1].Block != 1 ||
		records[1].Trial != "b1-02-b" || records[1].Outcome != Measured {
		t.Errorf("%+v, bad %v", records, bad)
	}
}
