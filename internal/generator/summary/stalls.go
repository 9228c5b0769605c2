package summary

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/stats"
)

// closedStalls prints the throughput of a closed load without the machine's stalls.
func (p *page) closedStalls(l *record.Load) {
	x := l.WithoutStalls
	p.row("stalls", "the machine stalled %s of the time", units.PercentTo(1-x.RanShare, 1))
	if x.Unknown == "" {
		p.row("", "while all cores ran: %s requests/s (%s to %s)", units.Rate(x.PerS),
			units.FineRate(x.LowestPerS), units.FineRate(x.HighestPerS))
	} else {
		p.row("", "throughput is unknown without stalls (%s)", x.Unknown)
	}
	if causes := causesOf(l.Stalls); causes != "" {
		p.row("", "caused by %s", causes)
	}
}

// stalls prints the response times without the machine's stalls, below those with stalls.
func (p *page) stalls(l *record.Load) {
	switch {
	case l.Stalls == nil:
		return
	case l.Stalls.Missing != "":
		p.row("stalls", "not recorded: %s", l.Stalls.Missing)
		return
	case l.WithoutStalls != nil:
		p.closedStalls(l)
		return
	case len(l.StallFree) == 0:
		return
	}
	known, unknown := []string{}, map[string][]string{}
	remain, last := 1.0, int64(0)
	for _, q := range table.Percentiles(l, &l.ResponseTime, confidence) {
		i := slices.IndexFunc(l.StallFree, func(x record.StallFree) bool {
			return x.Quantile == q.Q
		})
		if i < 0 || q.Refused() { // fewer arrivals remain than the percentile needs
			continue
		}
		switch x := l.StallFree[i]; {
		case x.Unknown != "":
			unknown[x.Unknown] = append(unknown[x.Unknown], q.Name+bounds(&x))
		case x.Ns < last: // each percentile leaves out other requests
			unknown[outOfOrder] = append(unknown[outOfOrder], q.Name)
		default:
			remain, last = min(remain, x.KeptShare), x.Ns
			known = append(known, q.Name+" "+units.Duration(float64(x.Ns)))
		}
	}
	text := fmt.Sprintf("the machine stalled %s of the time", units.PercentTo(share(l), 1))
	if len(known) > 0 {
		text += fmt.Sprintf("; without the %s of requests near stalls:",
			units.PercentTo(1-remain, 1))
	}
	p.row("stalls", "%s", text)
	if len(known) > 0 {
		p.row("", "%s", strings.Join(known, ", "))
	}
	for _, reason := range slices.Sorted(maps.Keys(unknown)) {
		p.row("", "unknown without stalls: %s (%s)", strings.Join(unknown[reason], ", "), reason)
	}
	if causes := causesOf(l.Stalls); causes != "" {
		p.row("", "caused by %s", causes)
	}
}

// outOfOrder is the reason why a percentile is unknown that would be below a lower one.
const outOfOrder = "below a lower percentile"

// bounds returns the bounds of a percentile that stalls too short to be recorded make uncertain.
func bounds(x *record.StallFree) string {
	if x.Unknown != stats.UnrecordedStalls {
		return ""
	}
	return fmt.Sprintf(" between %s and %s", units.Duration(float64(x.LowestNs)),
		units.Duration(float64(x.Ns)))
}

// share returns the share of the observed time for which a core was stalled.
func share(l *record.Load) float64 {
	return float64(l.Stalls.StalledNs) / float64(max(l.Stalls.TimeNs, 1))
}

// causesShown is the number of listed causes of stalls.
const causesShown = 3

// causesOf lists the causes of the longest stalls, with their shares of the time.
func causesOf(s *record.Stalls) string {
	var all []string
	for _, c := range s.Causes[:min(len(s.Causes), causesShown)] {
		name := strings.TrimSpace(c.Cause + " " + c.Name)
		all = append(all, fmt.Sprintf("%s (%s)", name,
			units.PercentTo(float64(c.Ns)/float64(max(s.TimeNs, 1)), 1)))
	}
	return strings.Join(all, ", ")
}
