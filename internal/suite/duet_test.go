package suite_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/suite"
)

const duetSuite = `
name: d
contract: hello
blocks: 3
BASE
scenarios:
  - {name: read, requests: [{request: GET /a}]}
loads:
  - {name: peak, model: closed, connections: 2, measure: 1s}
`

// duets plans these targets two at a time; change may alter the suite first.
func duets(t *testing.T, base string, o suite.Override, targets ...string) (*suite.Plan, error) {
	t.Helper()
	s := read(t, strings.Replace(duetSuite, "BASE", base, 1))
	if err := s.Override(o); err != nil {
		t.Fatal(err)
	}
	var catalog []suite.Target
	for _, n := range targets {
		catalog = append(catalog, suite.Target{Name: n, Service: n, Contracts: []string{"hello"}})
	}
	return s.Plan(catalog)
}

func apart() suite.Override { return suite.Override{Duet: suite.Apart} }

// lines are a plan's duets: pass, block, left and right.
func lines(p *suite.Plan) (out []string) {
	name := func(t suite.Trial) string { return t.Target + t.Arm }
	for i := 0; i < len(p.Trials); i += 2 {
		l, r := p.Trials[i], p.Trials[i+1]
		out = append(out, fmt.Sprintf("%d %s %s", l.Block, name(l), name(r)))
	}
	return out
}

func TestDuetsOfTwo(t *testing.T) {
	p, err := duets(t, "", apart(), "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"1 a b", "2 b a", "3 a b"}
	if got := lines(p); !slices.Equal(got, want) {
		t.Errorf("duets are %q, want %q: sides swap", got, want)
	}
	ids := map[string]bool{}
	for i, x := range p.Trials {
		side := []string{suite.Left, suite.Right}[i%2]
		if x.Side != side || x.Order != i+1 || ids[x.ID] || x.Seed != p.Trials[i&^1].Seed {
			t.Errorf("trial %d is %+v; want side %s, its own id, its partner's seed", i, x, side)
		}
		ids[x.ID] = true
	}
	if p.Trials[0].ID != "b1-01-a" || p.Trials[3].ID != "b2-04-a" {
		t.Errorf("ids are %s and %s", p.Trials[0].ID, p.Trials[3].ID)
	}
	if p.Trials[0].Seed == p.Trials[2].Seed {
		t.Error("two blocks have one seed")
	}
}

// The baseline comes along with each of the others, and each of those duets is a block.
func TestDuetsWithABaseline(t *testing.T) {
	p, err := duets(t, "baseline: m", apart(), "a", "m", "z")
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Trials) != 3*2*2 {
		t.Fatalf("%d trials: %q", len(p.Trials), lines(p))
	}
	first := map[string]bool{} // who is met first in a pass
	seeds := map[uint64]bool{}
	for _, x := range p.Trials {
		seeds[x.Seed] = true
	}
	if len(seeds) != 3*2 {
		t.Errorf("%d seeds, want one a duet", len(seeds))
	}
	for pass := range 3 {
		met := map[string]bool{}
		for k := range 2 {
			at := 4*pass + 2*k
			pair := p.Trials[at : at+2]
			if block := 2*pass + k + 1; pair[0].Block != block || pair[1].Block != block {
				t.Errorf("duet %d has blocks %d and %d", block, pair[0].Block, pair[1].Block)
			}
			if base := pair[pass%2]; base.Target != "m" {
				t.Errorf("pass %d: %s, want m at %d", pass, lines(p)[at/2], pass%2)
			}
			other := pair[1-pass%2].Target
			if met[other] = true; k == 0 {
				first[other] = true
			}
		}
		if !met["a"] || !met["z"] {
			t.Errorf("pass %d meets %v", pass, met)
		}
	}
	// Three passes bring one and the same order with probability 1/4; so does this seed not.
	if len(first) != 2 {
		t.Errorf("the order of the pairs is never shuffled: %q", lines(p))
	}
}

func TestDuetsOfArmsAndCheckouts(t *testing.T) {
	p, err := duets(t, "", suite.Override{Duet: suite.Shared, AA: true, Blocks: 2}, "x")
	if got, want := lines(p), []string{"1 xa xb", "2 xb xa"}; err != nil ||
		!slices.Equal(got, want) {
		t.Errorf("of one target: %q, error %v; want %q", got, err, want)
	}
	o := apart()
	o.Blocks = 1
	p, err = duets(t, "", o, "x", "x@base", "y", "y@base")
	if err != nil {
		t.Fatal(err)
	}
	got := lines(p)
	slices.SortFunc(got, func(a, b string) int { return strings.Compare(a[2:], b[2:]) })
	for i, want := range []string{" x@base x", " y@base y"} {
		if !strings.HasSuffix(got[i], want) {
			t.Errorf("of checkouts: %q", got)
		}
	}
}

func TestDuetsThatCannotBe(t *testing.T) {
	check := func(words string, base string, o suite.Override, targets ...string) {
		t.Helper()
		_, err := duets(t, base, o, targets...)
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v: %v\nwant %q", targets, err, words)
		}
	}
	check("has no partner among a, b, c; name two targets", "", apart(), "a", "b", "c")
	check("a has no partner among a; name two", "", apart(), "a")
	check("has no partner among", "", apart(), "x", "x@base", "y")
	check(`"twice" is no way`, "", suite.Override{Duet: "twice"}, "a", "b")
	check("leave out drivers", "drivers: [prony, wrk]", apart(), "a", "b")
}

// A duet is another method: its plan is never taken for that of single trials.
func TestDuetsChangeThePlan(t *testing.T) {
	hashes := map[string]string{}
	for _, how := range []string{"", suite.Apart, suite.Shared} {
		p, err := duets(t, "", suite.Override{Duet: how}, "a", "b")
		if err != nil {
			t.Fatal(err)
		}
		if other, seen := hashes[p.Hash]; seen {
			t.Errorf("duet %q and %q have one hash", how, other)
		}
		hashes[p.Hash] = how
	}
	alone, err := duets(t, "", suite.Override{}, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	both, err := duets(t, "", apart(), "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	_, got := both.Estimate()
	if _, want := alone.Estimate(); got != want/2 {
		t.Errorf("two at a time take %v, want %v", got, want)
	}
}
