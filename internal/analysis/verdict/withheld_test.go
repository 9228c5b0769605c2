package verdict_test

import (
	"slices"
	"testing"

	"prony.example/internal/analysis/verdict"
	"prony.example/internal/analysis/wording"
	"prony.example/record"
)

// TestWithheld checks that Withheld names the finding because of which a load has no latency. Rules
// on latency then make no finding, because it would follow from the first one.
func TestWithheld(t *testing.T) {
	check := func(what, rule, load string, change func(r rec, l ld)) {
		t.Helper()
		r := healthy()
		change(r, &r.Loads[0])
		v := verdict.Judge(r)
		f := verdict.Withheld(v, half)
		switch {
		case rule == "" && f != nil:
			t.Errorf("%s: latency is withheld because of %+v", what, *f)
		case rule != "" && (f == nil || f.Rule != rule || f.Load != load):
			t.Errorf("%s: want %s to withhold latency, have %+v", what, rule, f)
		case rule != "" && wording.Finding(*f).Observed == "":
			t.Errorf("%s: the finding says nothing to print instead: %+v", what, *f)
		}
		if other := verdict.Withheld(v, peak); (other != nil) != (rule != "" && load == "") {
			t.Errorf("%s: of the other load: %+v", what, other)
		}
	}
	check("healthy", "", "", func(rec, ld) {})
	check("above capacity", "capacity", half, backlog(100, 1000, 2))
	check("above capacity, and not sent", "capacity", half, func(r rec, l ld) {
		backlog(100, 1000, 2)(r, l)
		l.Sent = 5000
	})
	check("not sent", "delivered", half, func(_ rec, l ld) { l.Sent = 5000 })
	check("no answers", "answers", half, func(_ rec, l ld) { l.Done = 0 })
	check("a defect", "order", half, func(_ rec, l ld) { l.ResponseTime.P50Ns = 1 })
	check("another defect", "sums", half, func(_ rec, l ld) { l.Answered-- })
	check("failed", "failed", "", func(r rec, _ ld) { r.Outcome = record.Failed })
	// Errors and lag are serious, but the times belong to the requests.
	check("invalid for errors", "", "", func(_ rec, l ld) { l.Errors.Status = 5000 })
	check("suspect", "", "", func(_ rec, l ld) { l.OwnLag = flat(10000, sec) })
	check("a tool that counts wrong", "", "", by("hey 0.1.4", func(l ld) { l.Answered = 20000 }))

	r := healthy()
	l := &r.Loads[0]
	backlog(100, 1000, 2)(r, l)
	l.Waited, l.OwnLag, l.Autocorrelation.EffectiveShare = 9000, flat(10000, sec), 0.001
	l.Host.StealShare = 0.2 // which is not about latency alone
	var rules []string
	for _, f := range verdict.Judge(r).Findings {
		rules = append(rules, f.Rule)
	}
	if !slices.Equal(rules, []string{"capacity", "steal"}) {
		t.Errorf("above capacity the findings are %q, want the capacity's and the steal's", rules)
	}
}
