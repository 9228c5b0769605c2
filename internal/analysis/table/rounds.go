package table

import (
	"fmt"
	"math"
	"slices"

	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// SlicesReader reads the slices of a start by the name of its file in the run's folder.
type SlicesReader func(file string) (record.SlicesHead, []record.Slice, error)

// StartSlices has the raw slices of a start that counts.
type StartSlices struct {
	Block  int
	Head   record.SlicesHead
	Rows   []string // the names of its targets in tables, in the order of Head.Trials
	Slices []record.Slice

	rounds *stats.Rounds // of closed slices; targets are indices into Starts.names
}

// readSlices reads the raw slices of all starts that count. Without them ratios stay the same,
// because records have the sums, but their scatter between rounds is unknown.
func (s *Starts) readSlices(sc *Scenario, read SlicesReader) {
	if s == nil || read == nil {
		return
	}
	done := map[int]bool{} // by block
	for _, t := range sc.Targets {
		s.names = append(s.names, t.Name)
		for _, r := range t.Trials {
			block := t.blocks(r)
			if r.SideBySide == nil || r.SideBySide.File == "" || done[block] ||
				slices.Contains(s.Lost, block) {
				continue
			}
			done[block] = true
			head, all, err := read(r.SideBySide.File)
			x := StartSlices{Block: block, Head: head, Slices: all}
			if err == nil {
				err = x.agree(sc)
			}
			if err != nil {
				s.unread = append(s.unread, unreadSlices{block, err})
				continue
			}
			s.Raw = append(s.Raw, x)
		}
	}
	for i := range s.Raw {
		s.Raw[i].group(sc, s.names)
	}
	slices.SortFunc(s.Raw, func(a, b StartSlices) int { return a.Block - b.Block })
}

// unreadSlices is a start whose slices are missing, damaged or not those of its records.
type unreadSlices struct {
	block int
	err   error
}

// agree returns an error if the sums of closed slices are not those in the records of the start.
func (x *StartSlices) agree(sc *Scenario) error {
	sums := make([]record.Sliced, len(x.Head.Trials))
	for _, s := range x.Slices {
		if sum := &sums[s.Target]; !s.Open {
			sum.Slices++
			sum.Requests += s.Requests
			sum.TimeNs += s.ClosedNs - s.OpenedNs
		}
	}
	for _, t := range sc.Targets {
		for _, r := range t.Trials {
			index := slices.Index(x.Head.Trials, r.Trial)
			for i := range r.Loads {
				want := r.Loads[i].Slices
				if index < 0 || want == nil || r.Loads[i].Model != record.Closed {
					continue
				}
				if got := sums[index]; got.Slices != want.Slices || got.Requests != want.Requests ||
					got.TimeNs != want.TimeNs {
					return fmt.Errorf("%s has %d slices of trial %s with %d requests, but its "+
						"record has %d with %d", r.SideBySide.File, got.Slices, r.Trial,
						got.Requests, want.Slices, want.Requests)
				}
			}
		}
	}
	return nil
}

// unreadNote names the starts whose slices cannot be used.
func (s *Starts) unreadNote() []Note {
	if len(s.unread) == 0 {
		return nil
	}
	first := s.unread[0]
	return []Note{NoteOf(NoteSlicesUnread, units.Plural(len(s.unread), "start"), first.block,
		first.err.Error())}
}

// group names the targets of a start and groups its closed slices by round.
func (x *StartSlices) group(sc *Scenario, names []string) {
	x.Rows = make([]string, len(x.Head.Trials))
	for _, t := range sc.Targets {
		for _, r := range t.Trials {
			if index := slices.Index(x.Head.Trials, r.Trial); index >= 0 && t.blocks(r) == x.Block {
				x.Rows[index] = t.Name
			}
		}
	}
	var rows []stats.SliceRow
	for _, s := range x.Slices {
		target := slices.Index(names, x.Rows[s.Target])
		if s.Open || target < 0 { // its record is lost
			continue
		}
		row := stats.SliceRow{Round: s.Round, Target: target, Requests: s.Requests,
			TimeNs: s.ClosedNs - s.OpenedNs, CPUNs: s.CPUNs}
		if s.StealNs >= 0 {
			row.Covariates = []float64{float64(s.StealNs) / float64(max(s.EndedNs-s.BeganNs, 1))}
		}
		rows = append(rows, row)
	}
	x.rounds = stats.NewRounds(rows)
}

// Instances returns a target and its control, unless this is the counterpart: in ratios to other
// targets, both stand for the target.
func (sc *Scenario) Instances(t, counterpart *Target) []*Target {
	for _, again := range sc.Targets {
		if again.Info.ControlRow() == t.Name && again != counterpart {
			return []*Target{t, again}
		}
	}
	return []*Target{t}
}

// inStart returns the indices of the instances that have a value of a metric in slices of a start,
// and the mean of the values' logarithms.
func (sc *Scenario) inStart(block int, instances []*Target, load, name string) (side []int,
	mean float64,
) {
	for _, t := range instances {
		m, _ := t.Metric(load, name)
		if value, ok := ByBlock(m.Sliced)[block]; ok {
			side = append(side, slices.Index(sc.Starts.names, t.Name))
			mean += math.Log(value)
		}
	}
	return side, mean / float64(len(side))
}

// StartRatio returns the ratio of b to a in slices of a start; NaN if one has no value.
func (sc *Scenario) StartRatio(a, b *Target, load, name string, block int) float64 {
	_, logA := sc.inStart(block, sc.Instances(a, b), load, name)
	_, logB := sc.inStart(block, sc.Instances(b, a), load, name)
	return math.Exp(logB - logA)
}

// startRatios returns the log ratios of b to a in slices, one for each start in which both have
// values, with their errors from rounds if the raw slices are available. If a target's control ran
// in a start, the target's value is the mean of both instances, so that the control's share of the
// time serves all ratios to the target.
func (sc *Scenario) startRatios(a, b *Target, load, name string) (blocks []int,
	out []stats.StartRatio,
) {
	ma, _ := a.Metric(load, name)
	mb, _ := b.Metric(load, name)
	_, _, blocks = stats.Align(slicedItem(&ma), slicedItem(&mb))
	for _, block := range blocks {
		nan := math.NaN()
		ratio := stats.StartRatio{LogRatio: nan, SE: nan, Typical: nan, Ending: nan}
		sideA, logA := sc.inStart(block, sc.Instances(a, b), load, name)
		sideB, logB := sc.inStart(block, sc.Instances(b, a), load, name)
		if raw := sc.Starts.raw(block); raw != nil && ma.Model == record.Closed {
			quantity := stats.Throughput
			if name == metric.CPU {
				quantity = stats.CPUPerRequest
			}
			ratio = raw.rounds.Compare(sideA, sideB, quantity)
		}
		ratio.LogRatio = logB - logA
		out = append(out, ratio)
	}
	return blocks, out
}

// ending returns the share by which the ratio of b to a at the end of starts differs from the
// ratio of whole starts, on average over starts; false if it is not known.
func (sc *Scenario) ending(a, b *Target, m *Metric) (share float64, known bool) {
	_, starts := sc.startRatios(a, b, m.Load, m.Name)
	sum := 0.0
	for _, s := range starts {
		sum += s.Ending
	}
	share = math.Abs(math.Expm1(sum / float64(len(starts))))
	return share, !math.IsNaN(share)
}

func (s *Starts) raw(block int) *StartSlices {
	for i := range s.Raw {
		if s.Raw[i].Block == block {
			return &s.Raw[i]
		}
	}
	return nil
}

// SlicedRatio returns the ratio of b to a in a metric over the starts in which both have values.
// The start is the unit of inference. The error term is the scatter of the starts, or that of the
// control if it is significantly larger.
//
// The interval of a run that its user ended is one of a confidence sequence.
func (sc *Scenario) SlicedRatio(a, b *Target, load, name string, confidence float64) stats.Ratio {
	if len(sc.Starts.together(a.Name, b.Name)) == 0 {
		return sc.throughBase(a, b, load, name, confidence)
	}
	if sc.Starts.Interrupted {
		_, pair := sc.startRatios(a, b, load, name)
		return stats.LiveRatio(pair, confidence)
	}
	return sc.compareStarts(a, b, load, name, confidence).Ratio
}

// compareStarts compares over the starts of a run that reached its planned end. If the first starts
// planned the others, the error term is the scatter of the first ones.
func (sc *Scenario) compareStarts(a, b *Target, load, name string, confidence float64,
) stats.StartsRatio {
	blocks, pair := sc.startRatios(a, b, load, name)
	if len(sc.Starts.first) == 0 {
		return stats.CompareStarts(pair, sc.control(a, b, load, name, blocks), confidence)
	}
	var ordered []stats.StartRatio
	first := 0
	for _, inFirst := range []bool{true, false} {
		for i, block := range blocks {
			if slices.Contains(sc.Starts.first, block) == inFirst {
				ordered = append(ordered, pair[i])
			}
		}
		if inFirst {
			first = len(ordered)
		}
	}
	return stats.CompareStages(ordered, first, confidence)
}

// control returns the log ratios of the control in the same starts, which scatter as those of the
// pair should; nil without a control, or if the pair is the control.
func (sc *Scenario) control(a, b *Target, load, name string, starts []int) []stats.StartRatio {
	for _, again := range sc.Targets {
		first := sc.Target(again.Info.ControlRow())
		if first == nil || again == a || again == b {
			continue
		}
		blocks, all := sc.startRatios(first, again, load, name)
		var control []stats.StartRatio
		for i, block := range blocks {
			if slices.Contains(starts, block) { // not of another group of targets
				control = append(control, all[i])
			}
		}
		if len(control) != len(starts) {
			continue
		}
		if first == a || first == b {
			return stats.ControlOfMean(control)
		}
		return control
	}
	return nil
}
