package traces

import (
	"cmp"
	"math"
	"slices"
)

// MetricsFile holds the span metrics, beside telemetry.SpansFile: one operation of a trial a line.
const MetricsFile = "spanmetrics.ndjson"

// Bounds are the upper bounds of the duration buckets in ms: those of OpenTelemetry's connector,
// which begin at 2, with more below and between, because responses within 100 µs are common here.
var Bounds = []float64{.05, .1, .2, .3, .5, .7, 1, 1.5, 2, 3, 4, 6, 8, 10, 15, 20, 30, 50, 70, 100,
	150, 200, 300, 400, 600, 800, 1000, 1400, 2000, 5000, 10000, 15000}

// TrialAttribute and TargetAttribute are the attributes of a resource that name its trial: on
// received telemetry if several trials run at once, on span metrics always.
const (
	TrialAttribute  = "prony.trial"
	TargetAttribute = "prony.target"
)

// Calls are the span metrics of one operation in one trial, a line of spanmetrics.ndjson.
type Calls struct {
	Trial   string `json:"trial"`
	Target  string `json:"target"`
	FromNs  int64  `json:"fromNs"` // begin and end of the trial, Unix time
	ToNs    int64  `json:"toNs"`
	Service string `json:"service"`
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Status  string `json:"status,omitempty"`
	Calls   int64  `json:"calls"`
	SumNs   int64  `json:"sumNs"`
	MinNs   int64  `json:"minNs"`
	MaxNs   int64  `json:"maxNs"`
	// Buckets count the calls by duration: bucket i up to Bounds[i] ms, the last all longer ones.
	Buckets []uint64 `json:"buckets"`
}

// Quantile returns a quantile (0 to 1) of the durations in ns, interpolated inside its bucket as by
// Prometheus' histogram_quantile; the outermost buckets end at the minimum and the maximum.
func (c *Calls) Quantile(q float64) int64 {
	rank := q * float64(c.Calls)
	var below float64
	for i, n := range c.Buckets {
		if n == 0 || below+float64(n) < rank {
			below += float64(n)
			continue
		}
		lo, hi := c.MinNs, c.MaxNs
		if i > 0 {
			lo = max(lo, int64(Bounds[i-1]*1e6))
		}
		if i < len(Bounds) {
			hi = min(hi, int64(Bounds[i]*1e6))
		}
		return lo + int64(float64(hi-lo)*(rank-below)/float64(n))
	}
	return c.MaxNs
}

// Operation summarizes one operation of a service.
type Operation struct {
	Service string  `json:"service"`
	Name    string  `json:"name"`
	Kind    string  `json:"kind"`
	Calls   int64   `json:"calls"`
	Errors  int64   `json:"errors"`
	PerS    float64 `json:"callsPerS"` // -1: unknown, with only stored traces
	P50Ns   int64   `json:"p50Ns"`
	P99Ns   int64   `json:"p99Ns"`
}

type operationKey struct{ service, name, kind string }

// Metered returns the operations from span metrics: of all spans from the trials' begin to their
// end. Rates are per second of the trials of all targets that have the operation. Percentiles are
// interpolated in the buckets of Bounds.
func Metered(calls []*Calls) []Operation {
	all := map[operationKey]*Calls{}
	failed := map[operationKey]int64{}
	trials := map[string]bool{}
	lastedNs := map[string]int64{} // by target
	targets := map[operationKey]map[string]bool{}
	for _, c := range calls {
		if !trials[c.Trial] {
			trials[c.Trial] = true
			lastedNs[c.Target] += c.ToNs - c.FromNs
		}
		key := operationKey{c.Service, c.Name, c.Kind}
		if targets[key] == nil {
			targets[key] = map[string]bool{}
		}
		targets[key][c.Target] = true
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
		var lasted int64
		for target := range targets[key] {
			lasted += lastedNs[target]
		}
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

// Sampled returns the operations from stored traces. Pass only those of class Uniform: the others
// were stored because they are unusual.
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

// rank returns the percentile of sorted values by nearest rank.
func rank(sorted []int64, q float64) int64 {
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

func sortOperations(list []Operation) {
	slices.SortFunc(list, func(a, b Operation) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(b.Calls, a.Calls),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
}
