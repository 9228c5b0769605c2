package spanstore

import (
	"cmp"
	"encoding/binary"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"prony.example/internal/telemetry/traces"
)

// The places of a window. Asked traces have two, so that both slow and typical ones are kept if
// there are more than places.
const (
	askedSlow = iota
	askedEven
	failedEven
	slow
	uniform
)

// classOf maps each place to its class.
var classOf = [...]string{traces.Asked, traces.Asked, traces.Failed, traces.Slow,
	traces.Uniform}

// candidate is a trace that is kept at present.
type candidate struct {
	Seat
	trace traces.Trace
	id    pcommon.TraceID
	hash  uint64
	asked bool
	stale bool // spans arrived since its root was found
}

// evenHash distributes trace ids evenly, also those from counters. The traces with the lowest
// hashes are a uniform sample that does not depend on their order (bottom-k sampling; Cohen and
// Kaplan, PODC 2007).
func evenHash(id pcommon.TraceID) uint64 {
	return Mix(binary.BigEndian.Uint64(id[:8]) ^ Mix(binary.BigEndian.Uint64(id[8:])))
}

// Mix is the mixing function of SplitMix64 (Steele et al., OOPSLA 2014).
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// byHash and bySlowness order candidates, the ones to keep first. No two are equal.
func byHash(a, b *candidate) int {
	return cmp.Or(cmp.Compare(a.hash, b.hash), slices.Compare(a.id[:], b.id[:]))
}

func bySlowness(a, b *candidate) int {
	return cmp.Or(cmp.Compare(b.trace.DurationNs, a.trace.DurationNs), byHash(a, b))
}

// newGroup returns the places of one window.
func newGroup(o Options) Group[*candidate] {
	return Group[*candidate]{
		askedSlow:  {Limit: (o.Asked + 1) / 2, Order: bySlowness},
		askedEven:  {Limit: o.Asked / 2, Order: byHash},
		failedEven: {Limit: o.Errors, Order: byHash},
		slow:       {Limit: o.Slow, Order: bySlowness},
		uniform:    {Limit: o.Uniform, Order: byHash},
	}
}

// Eligible reports whether a trace may have a place.
func (c *candidate) Eligible(place int) bool {
	switch classOf[place] {
	case traces.Asked:
		return c.asked
	case traces.Failed:
		return c.trace.Errors > 0
	}
	return true
}

// classes returns the classes of a candidate's places.
func (c *candidate) classes() (out []string) {
	for i, name := range classOf {
		if c.In&(1<<i) != 0 && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
