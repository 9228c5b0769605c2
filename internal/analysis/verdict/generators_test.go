package verdict_test

import (
	"slices"
	"strings"
	"testing"

	"prony.example/internal/analysis/verdict"
	"prony.example/internal/analysis/wording"
	"prony.example/record"
)

// many returns a change to a load from three generators, of which the second is changed.
func many(change func(*record.Generator)) func(rec, ld) {
	return func(_ rec, l ld) {
		l.Generators = []record.Generator{{Index: 0, Name: "a/1"}, {Index: 1, Name: "b/2"},
			{Index: 2, Name: "c/3"}}
		for i := range l.Generators {
			l.Generators[i].Clock = record.Clock{OffsetNs: 7 * sec, ErrorNs: 0.02 * ms,
				DriftErrorNs: 0.03 * ms, DriftNs: -0.01 * ms}
		}
		change(&l.Generators[1])
	}
}

// manyRows has loads from several generators. Half has 1,000/s: a tenth of its mean gap is 0.1 ms.
var manyRows = []row{
	{"generators", half, valid, many(func(*record.Generator) {})},
	{"generators", half, invalid, many(func(g *record.Generator) { g.Fault = "is gone" })},
	{"generators", peak, invalid, many(func(g *record.Generator) { g.Fault = "is gone" })},
	{"generators", half, suspect, many(func(g *record.Generator) {
		g.Findings = []record.Finding{{Rule: "lag", Grade: suspect, Value: ms}}
	})},
	{"generators", half, invalid, many(func(g *record.Generator) {
		g.Findings = []record.Finding{
			{Rule: "stalled", Grade: invalid, Value: sec}}
	})},

	{"clocks", half, valid, many(func(*record.Generator) {})},
	{"clocks", half, valid, many(func(g *record.Generator) { g.Clock.ErrorNs = 0.1 * ms })},
	{"clocks", half, suspect, many(func(g *record.Generator) { g.Clock.ErrorNs = 0.1*ms + 1 })},
	{"clocks", half, suspect, many(func(g *record.Generator) { g.Clock.DriftNs = -0.071 * ms })},
	{"clocks", half, suspect, many(func(g *record.Generator) { g.Clock.DriftErrorNs = ms })},
	{"clocks", half, invalid, many(func(g *record.Generator) { g.Clock.DriftNs = 101 * ms })},
	{"clocks", peak, valid, many(func(g *record.Generator) { g.Clock.ErrorNs = 99 * ms })},
	{"clocks", peak, invalid, many(func(g *record.Generator) { g.Clock.ErrorNs = 101 * ms })},
	{"clocks", half, noted, many(func(g *record.Generator) { g.Clock.WallNs = -2 * sec })},
}

// TestGeneratorsAreNamed checks that a finding names its generator, or the first of several.
func TestGeneratorsAreNamed(t *testing.T) {
	observed := func(rule string, change func(*record.Load)) string {
		t.Helper()
		r := healthy()
		many(func(*record.Generator) {})(r, &r.Loads[0])
		change(&r.Loads[0])
		v := verdict.Judge(r)
		i := slices.IndexFunc(v.Findings, func(f record.Finding) bool { return f.Rule == rule })
		if i < 0 {
			t.Fatalf("%s finds nothing", rule)
		}
		return wording.Finding(v.Findings[i]).Observed
	}
	all := observed("generators", func(l *record.Load) {
		l.Generators = append(l.Generators, record.Generator{Index: 3, Name: "d/4"},
			record.Generator{Index: 4, Name: "e/5"})
		for i := range l.Generators {
			l.Generators[i].Fault = "is gone"
		}
	})
	const want = "generator 0 (a/1) is gone; generator 1 (b/2) is gone; generator 2 (c/3) is " +
		"gone; and 2 more"
	if all != want {
		t.Errorf("%q, want %q", all, want)
	}
	if got := observed("clocks", func(l *record.Load) {
		l.Generators[2].Clock.WallNs = sec
	}); got != "generator 2 (c/3): its wall clock is 1s off" {
		t.Errorf("%q", got)
	}
	if got := observed("clocks", func(l *record.Load) {
		l.Generators[1].Clock.ErrorNs = ms
	}); !strings.HasPrefix(got, "generator 1 (b/2): its clock is up to 1ms off") {
		t.Errorf("%q", got)
	}
}

// TestAlone checks that the findings on one generator are about its own health, not about the
// service.
func TestAlone(t *testing.T) {
	r := healthy()
	l := &r.Loads[0]
	if f := verdict.Alone(l); len(f) > 0 {
		t.Errorf("a healthy part: %+v", f)
	}
	l.Errors.Status, l.Answered, l.Done = 500, l.Answered-500, l.Done-500 // the service's
	if f := verdict.Alone(l); len(f) > 0 {
		t.Errorf("a part with errors: %+v", f)
	}
	l.Sent -= 200 // 2 % were not sent
	f := verdict.Alone(l)
	if len(f) != 1 || f[0].Rule != "delivered" || f[0].Load != half {
		t.Errorf("a part that was not delivered: %+v", f)
	}
}
