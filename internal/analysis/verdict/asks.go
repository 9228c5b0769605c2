package verdict

import (
	"fmt"
	"time"

	"prony.example/record"
	"prony.example/record/metric"
)

const (
	unaskedMax = 0.01 // of what is wanted
	unaskedFew = 5    // and so many, which requests at the window's edges are
	othersMax  = 0.01 // of what was counted, by others
)

// unasked holds what a database or an upstream counted by itself against the answers: who asks less
// than a request takes answers from somewhere else, as from a cache of whole answers. Of several
// counters the worst finding is told.
func unasked(_ *record.Record, l *load) (worst *record.Finding) {
	for _, a := range l.Asks {
		f := asksOf(a, l.Load)
		if f != nil && (worst == nil || worse(worst.Grade, f.Grade) != worst.Grade) {
			worst = f
		}
	}
	return worst
}

func asksOf(a record.Asks, l *record.Load) *record.Finding {
	late := float64(a.LateNs) / float64(max(a.BetweenNs, 1))
	switch {
	case a.Error != "":
		return remark(a.Of+" is not known: "+a.Error,
			"whether the service asks it nobody has seen")
	case l.Done == 0 || a.Wanted == 0:
		return nil
	case late >= 1:
		return remark(fmt.Sprintf("%s counts %s up to %v late", a.Of, a.What,
			time.Duration(a.LateNs)), "raise measure: whether the service asks it nobody has seen")
	}
	least := a.Wanted*(1-unaskedMax-late) - unaskedFew
	if a.BetweenNs < l.WindowNs { // it was first read in the window: of the rest alone
		least *= float64(a.BetweenNs) / float64(l.WindowNs)
	}
	each, want := metric.AsksEach(a, l), a.Wanted/float64(l.Done)
	observed := fmt.Sprintf("%s: %s %s an answer", a.Of, apart(each, want, 2), a.What)
	limit := apart(want, each, 2)
	others := a.RestPerS * float64(a.BetweenNs) / 1e9
	switch {
	case a.Count < least:
		return invalid(observed, limit, "it answers without asking, as from a cache: have it ask, "+
			"or say with asks what it does")
	case a.Count-others < least:
		return suspect(fmt.Sprintf("%s, of which others may have asked %.0f %%", observed,
			100*others/a.Count), limit, "have nobody else use it while it is measured")
	case others > othersMax*a.Count:
		return remark(fmt.Sprintf("%s: others ask it, too, %.0f %s a second before the load",
			a.Of, a.RestPerS, a.What), "have nobody else use it while it is measured")
	}
	return nil
}
