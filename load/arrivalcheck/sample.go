// Package arrivalcheck tests single requests of a load for properties that no histogram shows:
// whether they left when they should have, and whether response times are correlated.
//
//	each thread's times ─► Merge ─► Arrivals ─► record.ArrivalProcess
//	                            └─► Correlation ─► record.Autocorrelation
//
// It is pure arithmetic on slices of nanoseconds, done once after a load. Non-goals: verdicts
// (package verdict has the limits), reading clocks, and repairing what it detects.
package arrivalcheck

import (
	"cmp"
	"math"
	"slices"
)

// Times are the times of single requests, one index per request: all requests that were due in a
// stretch of the load, in the order in which they left.
type Times struct {
	Due []int64
	// Left is when the request left minus its wait for a free connection: due + own lag. The
	// service causes that wait, so it is no property of the generator.
	Left     []int64
	Response []int64 // done − due; 0: no response
}

// Merge merges the samples of several threads, up to the moment that all of them reach. A schedule
// is distributed over threads, so the requests of one thread are not arrivals of the process.
// Threads without requests do not count.
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
