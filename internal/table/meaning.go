package table

import (
	"slices"
	"strings"

	"prony/internal/unit"
)

// Meaning is what a metric stands for, in words that fit it.
type Meaning struct {
	Label  string // for people: "CPU per request"
	Higher bool   // is better
	Better string // what it is called when it got better: "faster", "less"
	Worse  string
	Lab    bool // it tells of the lab and not of the service
}

var meanings = map[string]Meaning{
	Throughput:     {"throughput", true, "faster", "slower", false},
	Achieved:       {"answered in time", true, "more", "less", false},
	ErrorShare:     {"errors", false, "fewer", "more", false},
	CPU:            {"CPU per request", false, "less", "more", false},
	RSS:            {"memory (RSS)", false, "less", "more", false},
	Listen:         {"time to listen", false, "faster", "slower", false},
	Ready:          {"time to ready", false, "faster", "slower", false},
	FirstResponse:  {"first response", false, "faster", "slower", false},
	"steady_at":    {"time to steady", false, "faster", "slower", false},
	"time_to_peak": {"time to peak", false, "faster", "slower", false},
	"warmup_cost":  {"warm-up cost", false, "less", "more", false},
	ArtifactSize:   {"artifact size", false, "smaller", "larger", false},
	ImageSize:      {"image size", false, "smaller", "larger", false},
	Mean:           {"mean response time", false, "faster", "slower", false},
	Max:            {"longest response time", false, "faster", "slower", false},
	Requests:       {"requests", true, "more", "fewer", false},
	CPUUsed:        {"processors used", false, "less", "more", false},
	Threads:        {"threads", false, "fewer", "more", false},

	"generator_cpu_per_request": {"generator's CPU", false, "less", "more", true},
	"lag_p99":                   {"generator's lag p99", false, "less", "more", true},
	"own_lag_p99":               {"generator's own lag p99", false, "less", "more", true},
}

// MeaningOf is that of a metric of Study, by its name and unit. Names that it does not know are
// called by themselves; of their values, rates are better when higher and all else when lower.
func MeaningOf(name, base string) Meaning {
	if m, ok := meanings[name]; ok {
		return m
	}
	m := Meaning{Label: strings.ReplaceAll(name, "_", " "), Better: "less", Worse: "more"}
	switch {
	case base == unit.PerS:
		m.Higher, m.Better, m.Worse = true, "faster", "slower"
	case base == unit.Ns:
		m.Better, m.Worse = "faster", "slower"
	}
	return m
}

// unusual are shown where somebody asks for them: they say again what others say better.
var unusual = []string{ErrorShare, Listen, FirstResponse, Mean, Max, Requests, CPUUsed, Threads,
	ImageSize}

// Usual tells whether a comparison shows a metric without being asked. A latency at the peak it
// does not where there is an open load: it follows from connections and throughput (Little's law).
// Nor what tells of the lab, nor errors, of which more than one in a thousand makes a load INVALID:
// every further row costs the others power, when P values are corrected for their number.
func Usual(m Metric, loads []LoadInfo) bool {
	has := func(model string) bool {
		return slices.ContainsFunc(loads, func(l LoadInfo) bool { return l.Model == model })
	}
	_, latency := shareOf(m.Name)
	switch {
	case MeaningOf(m.Name, m.Unit).Lab, slices.Contains(unusual, m.Name):
		return false
	case m.Model == closed:
		return !latency || !has(open)
	case m.Model == open:
		return latency || m.Name == Achieved || !has(closed) && m.Name != Throughput
	}
	return true
}

// Tells is whether a load is one that a bare metric's name means: throughput, CPU and memory at
// closed loads, percentiles at open ones, where there are such loads. The others follow from the
// load: half of a peak is served at half of that peak's rate.
func Tells(m Metric, loads []LoadInfo) bool {
	model := open
	if m.Name == Throughput || m.Name == CPU || m.Name == RSS {
		model = closed
	}
	has := slices.ContainsFunc(loads, func(l LoadInfo) bool { return l.Model == model })
	return m.Model == "" || m.Model == model || !has
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

// shareOf is the share of requests below a percentile that has a metric: 0.99 of "p99".
func shareOf(name string) (q float64, ok bool) {
	for _, p := range shown {
		if p.name == name {
			return p.q, true
		}
	}
	return 0, false
}
