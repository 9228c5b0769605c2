package table

import (
	"math"

	"prony.example/record"
	"prony.example/record/metric"
)

// keptApart is the reason why a ratio of response times without stalls is unknown: stalls left out
// much more of one target's arrivals than of the other one's, so what remains is not alike.
const keptApart = "unlike shares of arrivals remain"

// mostApart bounds how far the shares of arrivals that remain may be apart.
const mostApart = 0.1

// notRecorded is the reason why a ratio is unknown if the stalls of one side alone were recorded.
const notRecorded = "stalls were not recorded"

// KeptApart returns why two targets' response times without the machine's stalls cannot be
// compared, from slices or from windows; none if they can.
func KeptApart(a, b *Target, m *Metric, source Source) Note {
	q := metric.Named(m.Name, m.Unit).Quantile
	stallFree := m.SlicedFree
	if source != FromSlices && q != 0 {
		var why Note
		if stallFree, why = bothStallFree(a, b, m); why.Is() {
			return why
		}
	}
	if q == 0 || !stallFree {
		return Note{}
	}
	x, y := a.keptShare(m.Load, q, source), b.keptShare(m.Load, q, source)
	if math.Abs(x-y) <= mostApart || math.IsNaN(x-y) {
		return Note{}
	}
	return NoteOf(NoteStalled, Stalled{keptApart, min(x, y)})
}

// bothStallFree reports whether a percentile is without the machine's stalls in the windows of both
// targets, or, if in those of one alone, why it is not in the other's.
func bothStallFree(a, b *Target, m *Metric) (common bool, why Note) {
	x, _ := a.Metric(m.Load, m.Name)
	y, _ := b.Metric(m.Load, m.Name)
	if x.StallFree == y.StallFree {
		return x.StallFree, why
	}
	with := x
	if x.StallFree {
		with = y
	}
	if len(with.Points) == 0 { // there is nothing to compare
		return false, why
	}
	if with.WithStalls.Is() {
		return false, NoteOf(NoteStalled, with.WithStalls.Args...)
	}
	return false, NoteOf(NoteStalled, Stalled{Reason: notRecorded})
}

// keptShare is the mean share of arrivals that remain of a target's trials; NaN if there is none.
func (t *Target) keptShare(load string, quantile float64, source Source) float64 {
	sum, n := 0.0, 0
	add := func(all []record.StallFree) {
		if x := record.StallFreeOf(all, quantile); x != nil {
			sum, n = sum+x.KeptShare, n+1
		}
	}
	if source == FromSlices {
		for _, o := range t.inSlices(load) {
			add(o.load.Slices.StallFree)
		}
		return sum / float64(n)
	}
	for _, o := range t.offers(load) {
		add(o.load.StallFree)
	}
	return sum / float64(n)
}
