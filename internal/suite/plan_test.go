package suite_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/suite"
	"prony.example/record"
)

var catalog = []suite.Target{
	{Name: "rust", Service: "rust", Mode: "reactive", Contracts: []string{"hello", "http"}},
	{Name: "go", Service: "go", Mode: "virtual", Contracts: []string{"hello", "http", "compute"}},
	{Name: "java/virtual", Service: "java", Mode: "virtual", Contracts: []string{"hello"}},
	{Name: "java/platform", Service: "java", Mode: "platform", Contracts: []string{"hello"}},
	{Name: "node", Service: "node", Mode: "reactive", Contracts: []string{"http"}},
}

func plan(t *testing.T, s *suite.Suite, catalog []suite.Target) *suite.Plan {
	t.Helper()
	p, err := s.Plan(catalog)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// names returns the first block's targets, in alphabetical order, once per scenario.
func names(p *suite.Plan) string {
	var all []string
	for _, t := range p.Trials {
		if t.Block == 1 && t.Scenario == p.Suite.Scenarios[0].Name {
			all = append(all, t.Target)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestTargets(t *testing.T) {
	check := func(targets, contract, baseline, want, wantBase string) {
		t.Helper()
		s := read(t, strings.NewReplacer("[all]", targets, "contract: hello",
			"contract: "+contract, "baseline: go", "baseline: "+baseline).Replace(whole))
		p := plan(t, s, catalog)
		if got := names(p); got != want || p.Baseline != wantBase {
			t.Errorf("%s of %s: %q with baseline %q, want %q with %q", targets, contract, got,
				p.Baseline, want, wantBase)
		}
	}
	check("[all]", "hello", "go", "go java/platform java/virtual rust", "go")
	check("[]", "http", `""`, "go node rust", "")
	check("[java]", "hello", `""`, "java/platform java/virtual", "")   // a service is its targets
	check("['*/virtual', go]", "hello", "go", "go java/virtual", "go") // * stops at the slash
	check("[go, 'g*', go]", "hello", "go", "go", "go")                 // each once
	check("['*']", "compute", "go", "go", "go")                        // the others lack it
	check("[all]", "hello", "java/virtual", "go java/platform java/virtual rust", "java/virtual")
	check("[java/virtual, go]", "hello", "java", "go java/virtual", "java/virtual") // its only
}

func TestPlanErrors(t *testing.T) {
	check := func(name, old, new, want string) {
		t.Helper()
		s := read(t, strings.Replace(whole, old, new, 1))
		if _, err := s.Plan(catalog); err == nil || err.Error() != want {
			t.Errorf("%s\ngot  %v\nwant %s", name, err, want)
		}
	}
	check("unknown", "[all]", "\n  - go\n  - jawa/virtual", `s.yaml:6: no target or service `+
		`matches "jawa/virtual" in "- jawa/virtual"; did you mean "java/virtual"?`)
	check("unknown service", "[all]", "[rast]", `s.yaml:4: no target or service matches "rast" in `+
		`"targets: [rast]"; did you mean "rust"?`)
	check("nothing near", "[all]", "[elixir]", `s.yaml:4: no target or service matches "elixir" `+
		`in "targets: [elixir]"; there are go, java, java/platform, java/virtual, node, rust`)
	check("other contract", "[all]", "[node]",
		`s.yaml:4: no target that matches "node" gives the contract hello in "targets: [node]"`)
	check("nobody", "contract: hello", "contract: petclinic",
		`s.yaml:3: no target gives the contract petclinic in "contract: petclinic"`)
	check("unknown baseline", "baseline: go", "baseline: rusty", `s.yaml:5: no target or service `+
		`matches "rusty" in "baseline: rusty"; did you mean "rust"?`)
	check("baseline of several", "baseline: go", "baseline: java", `s.yaml:5: baseline "java" `+
		`is a service with several targets in "baseline: java"; choose one of these targets: `+
		`java/platform, java/virtual`)
	check("baseline elsewhere", "baseline: go", "baseline: node", `s.yaml:5: baseline "node" `+
		`is not among the targets of contract hello in "baseline: node"; add the baseline to `+
		`targets, or remove the key baseline`)
}

// A run has a bounded number of trials, because its records are read at once.
func TestPlanIsBounded(t *testing.T) {
	var many []suite.Target
	for i := range 17 {
		name := fmt.Sprintf("t%02d", i)
		many = append(many, suite.Target{Name: name, Service: name, Contracts: []string{"hello"}})
	}
	text := strings.NewReplacer("baseline: go", `baseline: ""`).Replace(whole)
	s := read(t, text)
	scenarios := len(s.Scenarios)
	s.Blocks = record.MaxTrials / (16 * scenarios)
	if p := plan(t, s, many[:16]); len(p.Trials) < record.MaxTrials-16*scenarios {
		t.Errorf("%d trials", len(p.Trials))
	}
	want := fmt.Sprintf("the plan has more than %d trials", record.MaxTrials)
	if _, err := s.Plan(many); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	s.For = suite.Duration(1000 * time.Hour)
	if p := plan(t, s, many); len(p.Trials) > record.MaxTrials {
		t.Errorf("a run with a time has %d trials", len(p.Trials))
	}
}

func TestPlanIsAFunctionOfItsInput(t *testing.T) {
	first := plan(t, read(t, whole), catalog)
	if again := plan(t, read(t, whole), catalog); !reflect.DeepEqual(first, again) {
		t.Error("two plans of the same suite differ")
	}
	turned := slices.Clone(catalog)
	slices.Reverse(turned)
	if other := plan(t, read(t, whole), turned); !reflect.DeepEqual(first, other) {
		t.Error("the order of the catalog changes the plan")
	}
	// Pinned, so that a change of the shuffle, the seeds or the hash is noticed: old plans could no
	// longer be repeated by their seed.
	var got strings.Builder
	for _, tr := range first.Trials[:5] {
		fmt.Fprintf(&got, "%s %d\n", tr.ID, tr.Seed)
	}
	if want := pinned; got.String() != want {
		t.Errorf("the plan is\n%swant\n%s", got.String(), want)
	}
}

func TestSeedDecidesOrderAndLoads(t *testing.T) {
	trials := func(seed uint64) (order string, loads uint64) {
		s := read(t, whole)
		if err := s.Override(suite.Override{Seed: &seed}); err != nil {
			t.Fatal(err)
		}
		p := plan(t, s, catalog)
		for _, tr := range p.Trials {
			order += tr.ID + "\n"
		}
		return order, p.Trials[0].Seed
	}
	orders, loads := map[string]bool{}, map[uint64]bool{}
	for seed := range uint64(100) {
		order, load := trials(seed)
		orders[order], loads[load] = true, true
	}
	// Each of 2 blocks has 8! = 40,320 orders: that two of 100 seeds agree in both has a chance of
	// 4,950 / 40,320², which is 3 in a million.
	if len(orders) != 100 || len(loads) != 100 {
		t.Errorf("100 seeds give %d orders and %d seeds of loads", len(orders), len(loads))
	}
}

// pinned is the beginning of whole's plan.
const pinned = `b1-01-java.platform-cached-read 2506848023562137
b1-02-java.platform-other 8753083498597586
b1-03-rust-cached-read 2506848023562137
b1-04-java.virtual-cached-read 2506848023562137
b1-05-go-other 8753083498597586
`

func TestTrialsAreNumberedAndShareSeeds(t *testing.T) {
	p := plan(t, read(t, whole), catalog)
	if want := 2 * 4 * 2; len(p.Trials) != want { // blocks × targets × scenarios
		t.Fatalf("%d trials, want %d", len(p.Trials), want)
	}
	seeds := map[string]uint64{} // by block and scenario
	seen := map[string]bool{}
	for i, tr := range p.Trials {
		if tr.Order != i+1 || tr.Block != 1+i/8 || tr.Variant != "none" || seen[tr.ID] {
			t.Errorf("trial %d is %+v", i, tr)
		}
		seen[tr.ID] = true
		want := fmt.Sprintf("b%d-%02d-%s-%s", tr.Block, tr.Order,
			strings.ReplaceAll(tr.Target, "/", "."), strings.ReplaceAll(tr.Scenario, " ", "-"))
		if tr.ID != want {
			t.Errorf("id %q, want %q", tr.ID, want)
		}
		if tr.Seed >= 1<<53 {
			t.Errorf("seed %d is not below 2^53", tr.Seed)
		}
		at := fmt.Sprint(tr.Block, tr.Scenario)
		if seeds[at] != 0 && seeds[at] != tr.Seed {
			t.Errorf("%s has another seed than the others of its block and scenario", tr.ID)
		}
		seeds[at] = tr.Seed
	}
	different := map[uint64]bool{}
	for _, seed := range seeds {
		different[seed] = true
	}
	if len(different) != 4 { // 2 blocks × 2 scenarios
		t.Errorf("%d seeds, want 4: %v", len(different), seeds)
	}
	// The seed depends on the scenario's name: alone in its suite it has the same requests.
	alone := read(t, whole)
	alone.Scenarios = alone.Scenarios[1:]
	q := plan(t, alone, catalog)
	if got := q.Trials[0]; got.Seed != seeds["1other"] || strings.Contains(got.ID, "other") {
		t.Errorf("alone, the scenario's first trial is %+v, want seed %d", got, seeds["1other"])
	}
}

func TestHashesFollowWhatIsDone(t *testing.T) {
	base := plan(t, read(t, whole), catalog)
	check := func(name string, change func(*suite.Suite), wantSame bool) {
		t.Helper()
		s := read(t, whole)
		change(s)
		p := plan(t, s, catalog)
		if (p.Hash == base.Hash) != wantSame || len(p.Hash) != 16 {
			t.Errorf("%s: plan hash %q and before %q; same: want %v", name, p.Hash, base.Hash,
				wantSame)
		}
		if p.Suite.Hash != base.Suite.Hash {
			t.Errorf("%s: the suite's hash changed", name)
		}
	}
	override := func(o suite.Override) func(*suite.Suite) {
		return func(s *suite.Suite) {
			if err := s.Override(o); err != nil {
				t.Error(err)
			}
		}
	}
	seed := uint64(8)
	check("nothing", func(*suite.Suite) {}, true)
	check("no override", override(suite.Override{}), true)
	check("seed", override(suite.Override{Seed: &seed}), false)
	check("blocks", override(suite.Override{Blocks: 3}), false)
	check("measure", override(suite.Override{Measure: suite.Duration(time.Second)}), false)
	check("warm-up", override(suite.Override{Warmup: suite.Duration(time.Second)}), false)
	check("targets", override(suite.Override{Targets: []string{"go"}}), false)

	// A comment changes the suite's hash and not the plan's; so does the question.
	p := plan(t, read(t, strings.Replace(whole, "How fast?", "How?", 1)+"# more\n"), catalog)
	if p.Hash != base.Hash || p.Suite.Hash == base.Suite.Hash {
		t.Errorf("hashes of plan %q, %q; of suite %q, %q", p.Hash, base.Hash, p.Suite.Hash,
			base.Suite.Hash)
	}
}

// Flags replace limits and select scenarios.
func TestOverrideNarrows(t *testing.T) {
	s := read(t, whole)
	last := s.Scenarios[len(s.Scenarios)-1].Name
	err := s.Override(suite.Override{Limits: suite.Limits{CPUs: 2, Memory: 1 << 29},
		Scenarios: []string{last[:1] + "*"}})
	if err != nil || s.Limits != (suite.Limits{CPUs: 2, Memory: 1 << 29}) ||
		len(s.Scenarios) != 1 || s.Scenarios[0].Name != last {
		t.Errorf("narrowed to limits %+v, %d scenarios, %v", s.Limits, len(s.Scenarios), err)
	}
	err = s.Override(suite.Override{Scenarios: []string{"none*"}})
	if err == nil || !strings.Contains(err.Error(), `no scenario matches "none*"`) {
		t.Errorf("a pattern that matches nothing: %v", err)
	}
	err = s.Override(suite.Override{Limits: suite.Limits{Memory: 1}})
	if err == nil || s.Limits.Memory != 1<<29 {
		t.Errorf("a byte of memory: %v, limits %+v", err, s.Limits)
	}
}

// A load is offered with the load that its rate is a share of, and alone if its rate is no share.
func TestOverrideLoads(t *testing.T) {
	const loads = `loads:
  - {name: peak, model: closed, connections: 8}
  - {name: other, model: closed, connections: 8}
  - {name: half, model: open, connections: 8, rate: 50% of peak}
  - {name: fixed, model: open, connections: 8, rate: 100/s}
`
	at := strings.Index(whole, "loads:")
	for patterns, want := range map[string]string{"": "peak other half fixed", "peak": "peak",
		"half": "peak half", "fixed,oth*": "other fixed", "f*": "fixed"} {
		s := read(t, whole[:at]+loads)
		var o suite.Override
		if patterns != "" {
			o.Loads = strings.Split(patterns, ",")
		}
		err := s.Override(o)
		var got []string
		for _, l := range s.Loads {
			got = append(got, l.Name)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q leaves %v, %v; want %s", patterns, got, err, want)
		}
		err = s.Override(suite.Override{Loads: []string{"pek"}})
		if err == nil || !strings.Contains(err.Error(), `no load matches "pek"`) ||
			len(s.Loads) != len(got) {
			t.Errorf("a pattern that matches nothing: %v, %d loads", err, len(s.Loads))
		}
	}
	// As many blocks as its own length allows: an omitted load takes no time.
	one := read(t, whole[:at]+"loads:\n  - {name: peak, model: closed}\n")
	some := read(t, whole[:at]+loads)
	lasting := suite.Duration(5 * time.Minute)
	err := errors.Join(one.Override(suite.Override{For: lasting}),
		some.Override(suite.Override{For: lasting, Loads: []string{"peak"}}))
	if err != nil || some.Blocks != one.Blocks {
		t.Errorf("%d blocks, %v; with no other load %d", some.Blocks, err, one.Blocks)
	}
}

func TestOverride(t *testing.T) {
	s := read(t, whole)
	before := plan(t, s, catalog)
	seed := uint64(0)
	err := s.Override(suite.Override{Blocks: 5, Seed: &seed, Measure: suite.Duration(time.Minute),
		Warmup: suite.Duration(time.Second), Targets: []string{"java"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range s.Loads {
		if l.Measure.String() != "1m" {
			t.Errorf("load %s measures %v, want 1m", l.Name, l.Measure)
		}
	}
	if s.Blocks != 5 || s.Seed != 0 || s.Warmup.Max.String() != "1s" {
		t.Errorf("overridden: %+v", s)
	}
	// The baseline is not among the requested targets: the plan has none.
	after := plan(t, s, catalog)
	if names(after) != "java/platform java/virtual" || after.Baseline != "" {
		t.Errorf("targets %q, baseline %q", names(after), after.Baseline)
	}
	if before.Suite.Blocks != 2 || before.Suite.Loads[0].Measure.String() != "2s" {
		t.Errorf("the override reached an older plan: %+v", before.Suite)
	}

	check := func(o suite.Override, want string) {
		t.Helper()
		s := read(t, whole)
		err := s.Override(o)
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if !reflect.DeepEqual(s, read(t, whole)) {
			t.Error("a refused override changed the suite")
		}
	}
	check(suite.Override{Blocks: -1},
		"override suite quick: blocks: blocks -1 is outside of the range 1 to 1000")
	check(suite.Override{Blocks: 4, Targets: []string{"[x"}},
		`override suite quick: targets[0]: target pattern "[x" is malformed`)
	seed = 1 << 53
	check(suite.Override{Seed: &seed}, "override suite quick: seed: seed 9007199254740992 is "+
		"outside of the range 0 to 9007199254740991")

	s = read(t, whole)
	if err := s.Override(suite.Override{Targets: []string{"jav"}}); err != nil {
		t.Fatal(err)
	}
	_, err = s.Plan(catalog) // no line of the file is wrong
	want := `targets[0]: no target or service matches "jav"; did you mean "java"?`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestEstimate(t *testing.T) {
	slow := slices.Clone(catalog)
	for i := range slow {
		slow[i].Startup = 500 * time.Millisecond
	}
	p := plan(t, read(t, whole), slow)
	// A trial: start 500ms, warm-up 90s; peak 0 + 2s, half 0.2s + 2s, fixed 0.2s + 0.1s. 16 trials.
	want := 16 * (500 + 90_000 + 2000 + 2200 + 300) * time.Millisecond
	if _, got := p.Estimate(); got != want {
		t.Errorf("estimate %v, want %v", got, want)
	}
	if got, _ := p.Estimate(); got != want-16*88*time.Second { // it is steady after two seconds
		t.Errorf("at the least %v", got)
	}
	// With a time budget: eight of the trials are a block, and a run has one in any case.
	block := 8 * (500 + 90_000 + 2000 + 2200 + 300) * time.Millisecond
	for lasts, want := range map[time.Duration]time.Duration{time.Second: block,
		time.Hour: time.Hour} {
		p.Suite.For = suite.Duration(lasts)
		if _, got := p.Estimate(); got != want {
			t.Errorf("for %v: estimate %v, want %v", lasts, got, want)
		}
	}
}

// order returns the targets of a block, as their indices in the alphabet.
func order(p *suite.Plan, block int) []int {
	var all []int
	for _, tr := range p.Trials {
		if tr.Block == block {
			all = append(all, int(tr.Target[0]-'a'))
		}
	}
	return all
}

// counts is a table of observed frequencies that should be equal.
type counts map[[2]int]int

// chiSquare is Pearson's statistic (Philosophical Magazine, 1900) over n cells.
func (c counts) chiSquare(n int) float64 {
	total, sum := 0, 0.0
	for _, v := range c {
		total += v
	}
	want := float64(total) / float64(n)
	for _, v := range c {
		sum += (float64(v) - want) * (float64(v) - want) / want
	}
	return sum + float64(n-len(c))*want // cells that were never hit
}

// TestOrderIsBalanced shuffles six targets with the seeds 0 to 1999 and counts the positions of
// targets, their successors, and their positions in blocks 1 and 2. Under fair and independent
// shuffles each table is uniform. The bounds are quantiles 0.999 of chi-square; the seeds are
// fixed, so that the test passes always or never.
func TestOrderIsBalanced(t *testing.T) {
	const n, seeds = 6, 2000
	var six []suite.Target
	for i := range n {
		name := string(rune('a' + i))
		six = append(six, suite.Target{Name: name, Service: name, Contracts: []string{"hello"}})
	}
	s := read(t, whole)
	s.Scenarios, s.Baseline = s.Scenarios[:1], ""
	position, successor, blocks := counts{}, counts{}, counts{}
	for seed := range uint64(seeds) {
		if err := s.Override(suite.Override{Seed: &seed}); err != nil {
			t.Fatal(err)
		}
		p := plan(t, s, six)
		one, two := order(p, 1), order(p, 2)
		for i, target := range one {
			position[[2]int{target, i}]++
			if i > 0 {
				successor[[2]int{one[i-1], target}]++
			}
		}
		blocks[[2]int{slices.Index(one, 0), slices.Index(two, 0)}]++
	}
	check := func(name string, c counts, cells int, bound float64) {
		t.Helper()
		if got := c.chiSquare(cells); got > bound {
			t.Errorf("%s: chi-square %.1f, bound %.1f", name, got, bound)
		}
	}
	// A permutation fills rows and columns, so that positions have (6-1)² = 25 degrees of freedom
	// and the statistic's mean is 36 cells × (1/6 × 5/6) / (1/6) = 30 = 25 × 6/5: its bound is 6/5
	// of the quantile, 52.62. By the same sum the mean of successors is 25, compared with 29 free
	// cells. Two blocks give one independent pair each: 36-1 = 35.
	check("positions", position, n*n, 52.62*6/5)
	check("successors", successor, n*(n-1), 58.30)
	check("blocks", blocks, n*n, 66.62)
}

// Every target is compared with itself: two arms per block with their own names and one seed, in a
// shuffled order.
func TestArms(t *testing.T) {
	s := read(t, whole)
	if err := s.Override(suite.Override{AA: true, Blocks: 8}); err != nil {
		t.Fatal(err)
	}
	s.Scenarios = s.Scenarios[:1]
	p, err := s.Plan(catalog[1:2])
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Trials) != 16 {
		t.Fatalf("%d trials, want 2 in each of 8 blocks", len(p.Trials))
	}
	first := map[string]int{}
	for i := 0; i < len(p.Trials); i += 2 {
		x, y := p.Trials[i], p.Trials[i+1]
		if x.Block != y.Block || x.Arm == y.Arm || x.Seed != y.Seed || x.ID == y.ID {
			t.Errorf("block of %+v and %+v", x, y)
		}
		first[x.Arm]++
	}
	// By chance one of 128 seeds would have one arm first in all of 8 blocks; this one does not.
	if first["a"] == 0 || first["b"] == 0 {
		t.Errorf("first in their blocks: %v; want both arms", first)
	}
	if got := p.Trials[0].ID; got != "b1-01-go-"+p.Trials[0].Arm {
		t.Errorf("id %s", got)
	}
}

// The settings of a trial beside its loads have a hash of their own: it does not depend on the seed
// and the targets, but on the warm-up and the requests.
func TestSceneHash(t *testing.T) {
	s := read(t, whole)
	hash := func(s *suite.Suite) string { return s.SceneHash(s.Scenarios[0]) }
	first := hash(s)
	check := func(what string, change func(*suite.Suite), same bool) {
		t.Helper()
		other := read(t, whole)
		change(other)
		if got := hash(other) == first; got != same {
			t.Errorf("%s: the same hash is %v, want %v", what, got, same)
		}
	}
	check("nothing", func(*suite.Suite) {}, true)
	check("seed, blocks, targets", func(s *suite.Suite) {
		s.Seed, s.Blocks, s.Targets = 7, 9, nil
	}, true)
	check("warm-up", func(s *suite.Suite) { s.Warmup.Max *= 2 }, false)
	check("timeout", func(s *suite.Suite) { s.Timeout *= 2 }, false)
	check("keys", func(s *suite.Suite) { s.Scenarios[0].Keys[1]++ }, false)
	check("requests", func(s *suite.Suite) { s.Scenarios[0].Requests[0].Request += "x" }, false)
}

// A quick run has at most two blocks, windows of a second and warm-ups of six; flags apply
// afterwards.
func TestQuick(t *testing.T) {
	check := func(o suite.Override, blocks int, warmup, measure string) {
		t.Helper()
		s := read(t, whole)
		s.Blocks, s.Warmup.Max = 7, suite.Duration(20*time.Second)
		if err := s.Override(o); err != nil {
			t.Fatal(err)
		}
		if s.Blocks != blocks || s.Warmup.Max.String() != warmup {
			t.Errorf("%+v: %d blocks, warm-up %v", o, s.Blocks, s.Warmup.Max)
		}
		l := s.Loads[0] // of 2 s
		if l.Measure.String() != measure || time.Duration(l.Lead) > 200*time.Millisecond {
			t.Errorf("%+v: load %s measures %v after %v", o, l.Name, l.Measure, l.Lead)
		}
	}
	check(suite.Override{Quick: true}, 2, "6s", "1s")
	check(suite.Override{Quick: true, Blocks: 5, Measure: suite.Duration(4 * time.Second)}, 5, "6s",
		"4s")
	short := read(t, whole)
	short.Blocks = 1
	if err := short.Override(suite.Override{Quick: true}); err != nil || short.Blocks != 1 {
		t.Errorf("%d blocks, %v; want the suite's one", short.Blocks, err)
	}
}
