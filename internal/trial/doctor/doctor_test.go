package doctor

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/report"
	"prony.example/record"
)

var update = flag.Bool("update", false, "write testdata and docs/formats/doctor-checks.md")

// idle is a second of four cores in which two ticks of 400 were busy, one of them this process's.
var idle = happening{
	after: tree{"proc/stat": "cpu  1002 0 1000 98398 0 0 0 0 0 0"}, ownNs: 10_000_000,
}

// Typical hosts.
func TestHosts(t *testing.T) {
	check := func(name string, host tree, h happening, grade string) {
		t.Run(name, func(t *testing.T) {
			g := keep(t, host).examine(t, nil, h)
			if g.Grade != grade {
				t.Errorf("it is %s, want %s", g.Grade, grade)
			}
			var text bytes.Buffer
			if err := Text(&text, g, TextOptions{}); err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", name+".txt"), text.Bytes())
		})
	}
	check("lab", lab(), idle, record.Fit)
	// Of 400 ticks 80 were busy, one of them this process's: 79/400 = 19.8 %; a browser used 60 of
	// them.
	check("laptop", laptop(), happening{ownNs: 10_000_000, after: tree{
		"proc/stat":     "cpu  1080 0 1000 98320 0 0 0 0 0 0",
		"proc/200/stat": process(200, "Web (Content)", 160),
	}}, record.Doubtful)
	// 100 of 400 ticks stolen: 25 %.
	check("cloud", cloud(), happening{ownNs: 10_000_000, after: tree{
		"proc/stat": "cpu  1002 0 1000 98298 0 0 0 100 0 0",
	}}, record.Unfit)
	check("container", bare(), happening{after: idle.after, ro: true},
		record.Doubtful)
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf(
			"%s is\n%s\nwant\n%s\n(go test ./internal/trial/doctor -update blesses it)",
			file,
			got,
			want,
		)
	}
}

// One change to the lab's machine, and the result of its rule.
func TestRules(t *testing.T) {
	seen := map[string][]string{}
	k := keep(t, lab())
	check := func(rule, grade, observed string, changes tree) {
		t.Run(rule+" "+observed, func(t *testing.T) {
			c := find(t, k.examine(t, changes, idle), rule)
			if c.Grade != grade || c.Observed != observed {
				t.Errorf("%s: %q, want %s: %q", c.Grade, c.Observed, grade, observed)
			}
			bad := grade == record.Doubtful || grade == record.Unfit
			if bad != (c.Fix != "") {
				t.Errorf("%s has the fix %q", grade, c.Fix)
			}
			seen[rule] = append(seen[rule], grade)
		})
	}
	processorRows(check)
	timeRows(check)
	companyRows(check)
	memoryRows(check)
	networkRows(check)
	permissionRows(check)
	heatRows(check)
	speedRows(check)

	for _, r := range rules {
		want := []string{record.Fit}
		if r.Doubtful != "" {
			want = append(want, record.Doubtful)
		}
		if r.Unfit != "" {
			want = append(want, record.Unfit)
		}
		for _, grade := range want {
			known := []string{"wake-ups", "shared cache", "steal", "other load", "throttling",
				"stalls"}
			if !slices.Contains(seen[r.Name], grade) && !slices.Contains(known, r.Name) {
				t.Errorf("no row makes %s %s", r.Name, grade)
			}
		}
	}
}

func find(t *testing.T, g record.Grading, name string) record.Check {
	t.Helper()
	for _, c := range g.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no check %q", name)
	return record.Check{}
}

// The end of ctx ends the reading.
func TestExamineEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g := Examine(ctx, Options{Window: time.Hour})
	if len(g.Checks) != len(rules) {
		t.Errorf("%d checks, want %d", len(g.Checks), len(rules))
	}
}

func TestOverall(t *testing.T) {
	k := keep(t, lab())
	check := func(want string, changes tree) {
		t.Helper()
		if g := k.examine(t, changes, idle); g.Grade != want {
			t.Errorf("%v: %s, want %s", changes, g.Grade, want)
		}
	}
	check(record.Fit, nil)
	check(record.Fit, tree{"proc/loadavg": gone})                           // not vital
	check(record.Doubtful, tree{clocks + "current_clocksource": gone})      // vital
	check(record.Doubtful, tree{"proc/sys/kernel/randomize_va_space": "0"}) // one suffices
	check(record.Unfit, tree{clocks + "current_clocksource": "hpet"})
	check(record.Unfit, tree{clocks + "current_clocksource": "hpet", thp: "[always] never"})
}

func TestRefuse(t *testing.T) {
	check := func(g record.Grading, bar string, wants ...string) {
		t.Helper()
		err := Refuse(g, bar)
		if (err != nil) != (len(wants) > 0) {
			t.Errorf("%s for %s: %v", g.Grade, bar, err)
		}
		for _, w := range wants {
			if err != nil && !strings.Contains(err.Error(), w) {
				t.Errorf("%q lacks %q", err, w)
			}
		}
	}
	k := keep(t, lab())
	good := k.examine(t, nil, idle)
	soso := k.examine(t, tree{thp: "[always]", clocks + "current_clocksource": gone}, idle)
	bad := k.examine(t, tree{clocks + "current_clocksource": "hpet"}, idle)
	for _, bar := range Bars {
		check(good, bar)
	}
	check(soso, "any")
	check(soso, record.Doubtful)
	check(soso, record.Fit, "the host is doubtful, but --host requires fit", "huge pages (always)",
		"clock source (the kernel does not report it)", "prony doctor")
	check(bad, "any")
	check(bad, record.Doubtful, "the host is unfit, but --host requires doubtful: "+
		"clock source (hpet);")
	check(bad, record.Fit, "unfit", "clock source (hpet)")
}

// This host gets a grade and no panic; values that every kernel reports are known.
func TestThisHost(t *testing.T) {
	g := Examine(t.Context(), Options{Window: 100 * time.Millisecond})
	for _, name := range []string{"cores", "other load", "steal", "wake-ups", "shared cache",
		"memory"} {
		if c := find(t, g, name); c.Grade == record.Unknown {
			t.Errorf("%s is unknown: %s", name, c.Observed)
		}
	}
}

// The table in the documentation equals the code's.
func TestDocumentListsTheRules(t *testing.T) {
	const page = "../../../docs/formats/doctor-checks.md"
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want, err := report.Update(have, "checks", ruleTable())
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(have, want) {
		return
	}
	if !*update {
		t.Fatalf(
			"%s does not list the checks as they are: run go test ./internal/trial/doctor -update",
			page,
		)
	}
	if err := os.WriteFile(page, want, 0o644); err != nil {
		t.Fatal(err)
	}
}

func ruleTable() []byte {
	var b bytes.Buffer
	b.WriteString("| check | fit | doubtful | unfit | effect on numbers | source |\n" +
		"|---|---|---|---|---|---|\n")
	for _, r := range rules {
		name := r.Name
		if r.Vital {
			name += " (vital)"
		}
		cells := []string{name, r.Fit, r.Doubtful, r.Unfit, r.Why, r.Source}
		for i, c := range cells {
			if c == "" {
				c = "–"
			}
			cells[i] = strings.ReplaceAll(c, "|", `\|`)
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	return b.Bytes()
}
