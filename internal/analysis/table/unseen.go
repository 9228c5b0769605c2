package table

import (
	"slices"

	"prony.example/record"
	"prony.example/stats"
)

// estimates are those of stalls too short to be recorded, in the open loads of a run.
type estimates struct {
	all     stats.Unseen
	targets map[string]stats.Unseen // by row
}

// poolUnseen returns copies of the records in which percentiles without stalls are judged by an
// estimate of the stalls too short to be recorded from all trials of a run. The estimate of a
// single window, by which the trial itself decided, is mostly chance.
func poolUnseen(records []*record.Record) (out []*record.Record) {
	runs := map[string]*estimates{}
	for _, r := range records {
		e := runs[r.Run]
		if e == nil {
			e = &estimates{targets: map[string]stats.Unseen{}}
			runs[r.Run] = e
		}
		for i := range r.Loads {
			e.add(RowName(r.Target), unseenOf(&r.Loads[i])...)
		}
	}
	for _, r := range records {
		target := runs[r.Run].targets[RowName(r.Target)]
		most := target.Pool(runs[r.Run].all).Most()
		again := *r
		again.Loads = slices.Clone(r.Loads)
		for i := range again.Loads {
			l := &again.Loads[i]
			l.StallFree = judgeUnseen(l.StallFree, most)
			if l.Slices != nil {
				sliced := *l.Slices
				sliced.StallFree = judgeUnseen(sliced.StallFree, most)
				l.Slices = &sliced
			}
		}
		out = append(out, &again)
	}
	return out
}

func (e *estimates) add(target string, all ...*record.Unseen) {
	for _, x := range all {
		if x == nil {
			continue
		}
		u := stats.Unseen{Ns: float64(x.Ns), ErrNs: float64(x.ErrNs), TimeNs: x.TimeNs}
		e.all, e.targets[target] = e.all.Plus(u), e.targets[target].Plus(u)
	}
}

// unseenOf are the estimates of a load's window and of its slices; nil where there is none.
func unseenOf(l *record.Load) (all []*record.Unseen) {
	if l.Stalls != nil {
		all = append(all, l.Stalls.Unseen)
	}
	if l.Slices != nil {
		all = append(all, l.Slices.Unseen)
	}
	return all
}

// judgeUnseen decides again by a share of the time that stalls too short to be recorded took at
// most: a percentile that may be too high by more than all steps is unknown, and LowestNs bounds
// the others. Records of older versions lack the steps, and keep their decision.
func judgeUnseen(all []record.StallFree, most float64) []record.StallFree {
	all = slices.Clone(all)
	for i := range all {
		x := &all[i]
		if len(x.LowerFrom) == 0 {
			x.LowestNs = x.Ns
			continue
		}
		step, known := stats.Lower(x.LowerFrom, most)
		x.LowestNs = int64(float64(x.Ns) * (1 - step))
		switch {
		case x.Unknown == "" && !known:
			x.Unknown = stats.UnrecordedStalls
		case x.Unknown == stats.UnrecordedStalls && known:
			x.Unknown = ""
		}
	}
	return all
}
