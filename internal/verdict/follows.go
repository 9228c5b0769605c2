package verdict

import (
	"slices"

	"prony/internal/result"
)

// follows says which findings may be what another one comes from, the likeliest first. What no
// other brings about is a cause of its own, and its hint the advice that helps.
var follows = map[string][]string{
	"run delay":  {"cores", "neighbours", "steal"},
	"generator":  {"cores"},
	"ceiling":    {"generator", "run delay"},
	"timer":      {"quiet"},
	"neighbours": {"quiet"},
	"lag":        {"cores", "generator", "run delay", "neighbours", "steal", "timer"},
	"waited":     {"capacity", "throttled", "lag", "steal", "neighbours", "memory"},
	"rate":       {"lag", "waited"},
	"arrivals":   {"lag"},
	"bursts":     {"lag"},
	"batch":      {"generator", "lag"},
	"delivered":  {"capacity", "waited", "lag"},
	"capacity":   {"errors", "throttled"},
	"censored":   {"capacity", "waited"},
	"little":     {"capacity", "censored"},
	"drift":      {"warm-up", "throttled", "steal", "neighbours"},
	"settled":    {"warm-up", "throttled", "steal", "neighbours"},
	"samples":    {"steal", "warm-up"},
}

// Chain is a finding with what it follows from in the same verdict, the cause first. One on the
// whole trial may be the cause of any of its loads.
func Chain(v result.Verdict, f result.Finding) []result.Finding {
	chain := []result.Finding{f}
	for {
		last := chain[0]
		before := slices.IndexFunc(follows[last.Rule], func(rule string) bool {
			return find(v, rule, last.Load, chain) != nil
		})
		if before < 0 {
			return chain
		}
		chain = slices.Insert(chain, 0, *find(v, follows[last.Rule][before], last.Load, chain))
	}
}

// find looks for a rule's finding on a load or on the whole trial that a chain does not have yet.
func find(v result.Verdict, rule, load string, chain []result.Finding) *result.Finding {
	for i := range v.Findings {
		f := &v.Findings[i]
		if f.Rule == rule && (f.Load == load || f.Load == "") &&
			!slices.ContainsFunc(chain, func(c result.Finding) bool { return c.Rule == rule }) {
			return f
		}
	}
	return nil
}
