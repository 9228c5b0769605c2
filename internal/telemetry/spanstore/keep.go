package spanstore

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"prony/internal/telemetry/spans"
)

// The sets of a window in which a trace may find a place. Asked ones have two, so that neither the
// slow nor the usual ones are lost when there are more of them than places.
const (
	askedSlow = iota
	askedEven
	failedEven
	slow
	uniform
	sets
)

// classOf has the class of each set.
var classOf = [sets]string{spans.Asked, spans.Asked, spans.Failed, spans.Slow,
	spans.Uniform}

// candidate is a trace that is kept at present.
type candidate struct {
	trace spans.Trace
	id    pcommon.TraceID
	hash  uint64
	asked bool
	bytes int64
	in    uint8 // sets that hold it, a bit each
	stale bool  // spans came since its root was found
}

func (c *candidate) isIn(set int) bool { return c.in&(1<<set) != 0 }

// evenHash spreads trace ids evenly, also those of senders that count them up. The traces of the
// lowest hashes are a uniform sample, the same one in whatever order they come (bottom-k sampling;
// Cohen and Kaplan, PODC 2007).
func evenHash(id pcommon.TraceID) uint64 {
	return Mix(binary.BigEndian.Uint64(id[:8]) ^ Mix(binary.BigEndian.Uint64(id[8:])))
}

// Mix is the mixer of SplitMix64 (Steele et al., OOPSLA 2014).
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// byHash and bySlowness order candidates, the ones to keep first; no two are equal.
func byHash(a, b *candidate) int {
	return cmp.Or(cmp.Compare(a.hash, b.hash), slices.Compare(a.id[:], b.id[:]))
}

func bySlowness(a, b *candidate) int {
	return cmp.Or(cmp.Compare(b.trace.DurationNs, a.trace.DurationNs), byHash(a, b))
}

// place is a bounded set of the best.
type place struct {
	bit   int
	limit int
	items []*candidate // best first
	order func(a, b *candidate) int
}

// wants says whether a candidate would be taken; it costs one comparison in the usual case.
func (p *place) wants(c *candidate) bool {
	return p.limit > len(p.items) ||
		p.limit > 0 && p.order(c, p.items[len(p.items)-1]) < 0
}

// take puts a wanted candidate in and returns the one that lost its place, if any.
func (p *place) take(c *candidate) (out *candidate) {
	if len(p.items) >= p.limit {
		out = p.pop()
	}
	at, _ := slices.BinarySearchFunc(p.items, c, p.order)
	p.items = slices.Insert(p.items, at, c)
	c.in |= 1 << p.bit
	return out
}

// pop takes the worst out.
func (p *place) pop() *candidate {
	last := len(p.items) - 1
	c := p.items[last]
	p.items[last] = nil
	p.items = p.items[:last]
	c.in &^= 1 << p.bit
	return c
}

func (p *place) remove(c *candidate) {
	if c.isIn(p.bit) {
		p.items = slices.DeleteFunc(p.items, func(x *candidate) bool { return x == c })
		c.in &^= 1 << p.bit
	}
}

// group is what is kept of one window: each place holds the best of all that were ever offered, so
// the outcome does not depend on the order in which they came.
type group struct {
	places [sets]place
}

func newGroup(o Options) *group {
	g := &group{}
	for i, limit := range [sets]int{(o.Asked + 1) / 2, o.Asked / 2, o.Errors, o.Slow, o.Uniform} {
		g.places[i] = place{bit: i, limit: limit, order: byHash}
	}
	g.places[askedSlow].order, g.places[slow].order = bySlowness, bySlowness
	return g
}

// eligible says which places a trace may have at all.
func (c *candidate) eligible(set int) bool {
	switch classOf[set] {
	case spans.Asked:
		return c.asked
	case spans.Failed:
		return c.trace.Errors > 0
	}
	return true
}

// wants says whether the candidate would find any place.
func (g *group) wants(c *candidate) bool {
	for i := range g.places {
		if c.eligible(i) && g.places[i].wants(c) {
			return true
		}
	}
	return false
}

// offer gives the candidate every place that it deserves and returns those that have none left.
func (g *group) offer(c *candidate) (lost []*candidate) {
	for i := range g.places {
		p := &g.places[i]
		if !c.eligible(i) || !p.wants(c) {
			continue
		}
		if out := p.take(c); out != nil && out.in == 0 {
			lost = append(lost, out)
		}
	}
	if c.in == 0 {
		lost = append(lost, c)
	}
	return lost
}

// withdraw takes the candidate out of all places, so that it can be offered anew.
func (g *group) withdraw(c *candidate) {
	for i := range g.places {
		g.places[i].remove(c)
	}
}

// evict takes the worst of the least valuable class that has more than one out, and never lets the
// place that became free be filled again: there is no room for it. It returns whether there was
// one, and the candidate if it has no place left.
func (g *group) evict(set int) (bool, *candidate) {
	p := &g.places[set]
	if len(p.items) == 0 {
		return false, nil
	}
	c := p.pop()
	p.limit = len(p.items)
	if c.in == 0 {
		return true, c
	}
	return true, nil
}

// classes are the words for where a candidate is.
func (c *candidate) classes() (out []string) {
	for i, name := range classOf {
		if c.isIn(i) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
