package suite

import (
	"fmt"

	"prony.example/record/metric"
)

// Precision is the requested precision of a comparison. Starts are planned for it by the scatter of
// the first ones.
type Precision struct {
	Half   Percent  `json:"half"`             // half the width of the 95 % interval
	Metric string   `json:"metric"`           // of the ratio: one of PrecisionMetrics
	Within Duration `json:"within,omitempty"` // of all starts; 0: mostByPrecision limits them
}

// PrecisionMetrics are the metrics whose ratios can have a Precision.
var PrecisionMetrics = []string{metric.CPU, metric.Throughput}

const (
	// leastByPrecision is the minimum number of first starts: fewer show little of their scatter.
	leastByPrecision = 4
	// mostByPrecision limits the starts of a run without a time, as a multiple of the first ones.
	mostByPrecision = 10
)

// MostStarts returns the maximum number of starts of each scenario, including those for Precision.
func (s *Suite) MostStarts() int {
	switch {
	case s.Precision.Half == 0:
		return s.Blocks
	case s.Precision.Within == 0:
		return min(s.Blocks*mostByPrecision, blocksMax)
	}
	return max(s.Blocks, s.within(s.Precision.Within))
}

// Repetitions returns how many of a number of starts may be repeated because they lost a target:
// one in five, rounded up.
func Repetitions(starts int) int { return (starts + 4) / 5 }

// reserve plans the starts that a precision may need, and those that replace starts which lost a
// target. A run with a time budget has none, because it begins further starts in any case.
func (p *Plan) reserve(targets []Target) error {
	s := p.Suite
	sideBySide := p.Repeat() == "start"
	switch {
	case s.Precision.Half > 0 && s.Interleave == ByBlocks:
		return fmt.Errorf("--precision needs slices: remove interleave: blocks from the suite")
	case s.Precision.Half > 0 && !sideBySide && p.Blockwise != "":
		return fmt.Errorf("--precision needs slices, which are not possible: %s",
			p.Blockwise)
	case s.Precision.Half > 0 && !sideBySide:
		return fmt.Errorf("--precision needs slices of two or more targets, but this plan has " +
			"fewer targets")
	case s.Precision.Half >= 1:
		return fmt.Errorf("--precision must be less than 100%%, got %v", s.Precision.Half)
	case s.Precision.Half > 0 && s.Blocks < leastByPrecision:
		return fmt.Errorf("--precision needs --blocks of at least %d, got %d: the first starts "+
			"measure the scatter", leastByPrecision, s.Blocks)
	case !sideBySide || s.For > 0:
		return nil
	}
	for block := s.Blocks + 1; block <= s.MostStarts()+Repetitions(s.MostStarts()); block++ {
		for _, t := range p.sideBySide(s.block(block, targets)) {
			if t.Start != "" {
				p.Reserve = append(p.Reserve, t)
			}
		}
	}
	return nil
}
