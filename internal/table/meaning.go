package table

import (
	"slices"

	"prony/internal/metric"
	"prony/internal/result"
)

// Usual tells whether a comparison shows a metric without being asked. A latency at the peak it
// does not where there is an open load: it follows from connections and throughput (Little's law).
// Nor what tells of the lab, nor errors, of which more than one in a thousand makes a load INVALID:
// every further row costs the others power, when P values are corrected for their number.
func Usual(m Metric, loads []LoadInfo) bool {
	has := func(model string) bool { return offers(loads, model) }
	of := metric.Named(m.Name, m.Unit)
	latency := of.Quantile > 0
	switch {
	case of.Lab, of.Asked:
		return false
	case m.Model == result.Closed:
		return !latency || !has(result.Open)
	case m.Model == result.Capacity:
		return m.Name == metric.Capacity || !has(result.Closed)
	case m.Model == result.Open:
		return latency || m.Name == metric.Achieved ||
			!has(result.Closed) && m.Name != metric.Throughput
	}
	return true
}

// Tells is whether a load is one that a bare metric's name means: throughput, CPU and memory at
// closed loads, percentiles at open ones, where there are such loads. The others follow from the
// load: half of a peak is served at half of that peak's rate.
func Tells(m Metric, loads []LoadInfo) bool {
	model := result.Open
	switch of := metric.Named(m.Name, m.Unit); {
	case of.Peak:
		model = result.Closed
	case of.Model != "":
		model = of.Model
	}
	return m.Model == "" || m.Model == model || !offers(loads, model)
}

func offers(loads []LoadInfo, model string) bool {
	return slices.ContainsFunc(loads, func(l LoadInfo) bool { return l.Model == model })
}

// Wanted tells whether a metric is among the names that were asked for: "p99" under the loads where
// it tells, "half/p99" under one, "all"; without names the usual ones are.
func Wanted(m Metric, loads []LoadInfo, names []string) bool {
	if len(names) == 0 {
		return Usual(m, loads)
	}
	return slices.ContainsFunc(names, func(n string) bool {
		return n == "all" || n == m.Name && Tells(m, loads) || n == m.Load+"/"+m.Name
	})
}
