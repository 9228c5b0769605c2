// Package arrivalcheck judges single requests of a load, for what no histogram can tell: whether
// they left when they should have, and how much one answer tells of the next.
//
//	each thread's times ─► Merge ─► Arrivals ─► record.Process
//	                            └─► Correlation ─► record.Memory
//
// It is pure arithmetic on slices of nanoseconds, done once after a load. Non-goals: no verdict
// (package verdict has the limits), no clock, no repair of what it finds.
package arrivalcheck

import (
	"cmp"
	"math"
	"slices"
)

// Times are those of single requests, the k-th of each slice: all that were due in a stretch of the
// load, in the order in which they left.
type Times struct {
	Due []int64
	// Left is when the request left, less its wait for a free connection: due + own lag. That wait
	// is the service's doing and says nothing about the generator.
	Left     []int64
	Response []int64 // done − due; 0: no answer came
}

// Merge puts the samples of several threads together, as far as all of them reach: a schedule is
// shared out between threads, so that the requests of one are not the arrivals of any process. A
// thread without requests has none to wait for.
func Merge(threads ...Times) Times {
	type request struct{ due, remaining, response int64 }
	var all []request
	end := int64(math.MaxInt64)
	for _, t := range threads {
		if len(t.Left) == 0 {
			continue
		}
		end = min(end, slices.Max(t.Left))
		for k := range t.Left {
			all = append(all, request{t.Due[k], t.Left[k], t.Response[k]})
		}
	}
	slices.SortFunc(all, func(a, b request) int {
		return cmp.Or(cmp.Compare(a.remaining, b.remaining), cmp.Compare(a.due, b.due))
	})
	var out Times
	for _, r := range all {
		if r.remaining > end {
			break
		}
		out.Due = append(out.Due, r.due)
		out.Left = append(out.Left, r.remaining)
		out.Response = append(out.Response, r.response)
	}
	return out
}
