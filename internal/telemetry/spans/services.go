package spans

import (
	"cmp"
	"math"
	"slices"
)

// Operation is what one operation of a service did.
type Operation struct {
	Service string  `json:"service"`
	Name    string  `json:"name"`
	Kind    string  `json:"kind"`
	Calls   int64   `json:"calls"`
	Errors  int64   `json:"errors"`
	PerS    float64 `json:"callsPerS"` // -1: unknown, where only kept traces tell
	P50Ns   int64   `json:"p50Ns"`
	P99Ns   int64   `json:"p99Ns"`
}

type operationKey struct{ service, name, kind string }

// Metered are the operations by span metrics: of all spans from the trials' begin to their end.
// Percentiles are interpolated in the buckets of Bounds.
func Metered(calls []*Calls) []Operation {
	all := map[operationKey]*Calls{}
	failed := map[operationKey]int64{}
	var trials = map[string]int64{}
	var lasted int64
	for _, c := range calls {
		if _, seen := trials[c.Trial]; !seen {
			trials[c.Trial] = c.ToNs - c.FromNs
			lasted += c.ToNs - c.FromNs
		}
		key := operationKey{c.Service, c.Name, c.Kind}
		if c.Status == "error" {
			failed[key] += c.Calls
		}
		if m := all[key]; m != nil {
			m.merge(c)
			continue
		}
		m := *c
		m.Buckets = slices.Clone(c.Buckets)
		all[key] = &m
	}
	var out []Operation
	for key, c := range all {
		o := Operation{Service: key.service, Name: key.name, Kind: key.kind, Calls: c.Calls,
			Errors: failed[key], PerS: -1, P50Ns: c.Quantile(.5), P99Ns: c.Quantile(.99)}
		if lasted > 0 {
			o.PerS = float64(c.Calls) / (float64(lasted) / 1e9)
		}
		out = append(out, o)
	}
	sortOperations(out)
	return out
}

func (c *Calls) merge(d *Calls) {
	c.Calls += d.Calls
	c.SumNs += d.SumNs
	c.MinNs, c.MaxNs = min(c.MinNs, d.MinNs), max(c.MaxNs, d.MaxNs)
	for i := range c.Buckets {
		c.Buckets[i] += d.Buckets[i]
	}
}

// Sampled are the operations by kept traces. Choose those of the uniform class: the others are kept
// because they are unusual.
func Sampled(traces []*Trace) []Operation {
	durations := map[operationKey][]int64{}
	failed := map[operationKey]int64{}
	for _, t := range traces {
		for _, s := range t.Spans {
			key := operationKey{s.Service, s.Name, s.Kind}
			durations[key] = append(durations[key], s.DurationNs)
			if s.Status == "error" {
				failed[key]++
			}
		}
	}
	var out []Operation
	for key, ns := range durations {
		slices.Sort(ns)
		out = append(out, Operation{Service: key.service, Name: key.name, Kind: key.kind,
			Calls: int64(len(ns)), Errors: failed[key], PerS: -1, P50Ns: rank(ns, .5),
			P99Ns: rank(ns, .99)})
	}
	sortOperations(out)
	return out
}

// rank is the percentile by nearest rank of sorted values.
func rank(sorted []int64, q float64) int64 {
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

func sortOperations(list []Operation) {
	slices.SortFunc(list, func(a, b Operation) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(b.Calls, a.Calls),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
}
