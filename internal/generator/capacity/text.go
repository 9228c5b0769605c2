package capacity

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"prony.example/internal/base/format"
	"prony.example/internal/base/units"
	"prony.example/record/slo"
)

// Sizes of the plots.
const (
	barWidth  = 30
	boundBins = 8
)

// Line returns a step and its result on one line.
func (t Tried) Line() string {
	subject := units.Rate(t.RatePerS) + "/s"
	if t.RatePerS == 0 {
		subject = "closed"
		if t.Connections > 0 {
			subject = fmt.Sprintf("%d conn", t.Connections)
		}
	}
	out := fmt.Sprintf("%3d  %-9s %9s  %-7s", t.N, t.Phase, subject, t.Outcome)
	switch {
	case t.Phase == Warmup:
		out += "  " + units.Rate(t.ThroughputPerS) + "/s"
	case t.P99Ns > 0:
		out += "  p99 " + units.Duration(float64(t.P99Ns)) + t.stalls()
	}
	if t.Reason != "" {
		out += "  " + t.Reason
	}
	return strings.TrimRight(out, " ")
}

// stalls is what the row of a step says about the machine's stalls.
func (t Tried) stalls() string {
	if t.WithStalls {
		return " with stalls"
	}
	return ""
}

// Text prints a search's result for people.
func (f *Found) Text(w io.Writer) error {
	p := &format.Page{}
	window := time.Duration(f.WindowNs).Round(100 * time.Millisecond)
	if f.Found {
		p.Line("capacity    %s/s  [%s – %s] at %g %% confidence", units.FineRate(f.RatePerS),
			units.FineRate(f.LoPerS), units.FineRate(f.HiPerS), 100*f.Confidence)
		p.Line("            meets %s in half of the windows of %v,", f.SLO, window)
		p.Line("            and in 95 %% of the windows up to %s/s", units.FineRate(f.ReliablePerS))
	} else {
		subject := "not found"
		if f.AtLeastPerS > 0 {
			subject = "at least " + units.FineRate(f.AtLeastPerS) + "/s"
		}
		p.Line("capacity    %s: %s", subject, f.Reason)
		if f.AtLeastPerS > 0 && f.MissedPerS > 0 {
			p.Line("            a step met the objectives at this rate, and a step missed them "+
				"at %s/s",
				units.FineRate(f.MissedPerS))
		} else if f.AtLeastPerS > 0 {
			p.Line("            a step met the objectives at this rate, and no step missed them")
		}
		p.Line("            objectives %s, windows of %v", f.SLO, window)
	}
	p.Line("peak        %s/s, closed", units.Rate(f.PeakPerS))
	if f.CeilingPerS > 0 {
		p.Line("ceiling     %s/s, the generator limit against a null "+
			"server", units.Rate(f.CeilingPerS))
	}
	f.hysteresis(p)
	p.Line("effort      %d steps, %d of them near the capacity, in %v; seed %d", len(f.Steps),
		len(about(f.Steps)), time.Duration(f.ElapsedNs).Round(time.Second), f.Seed)
	for _, line := range doubts(f.Steps) {
		p.Line("doubt       %s", line)
	}
	for _, line := range f.Warnings {
		p.Line("warning     %s", line)
	}
	boundary(p, f.Steps)
	return p.To(w)
}

func (f *Found) hysteresis(p *format.Page) {
	switch h := f.Hysteresis; {
	case !h.Checked:
		p.Line("hysteresis  not checked: too few steps with rising and with falling rates")
	case h.Differs:
		p.Line(
			"hysteresis  %s/s if the rate rises, %s/s if it falls: %+.1f %% [%+.1f – %+.1f]",
			units.FineRate(
				h.BelowPerS,
			),
			units.FineRate(h.AbovePerS),
			100*h.Shift,
			100*h.Lo,
			100*h.Hi,
		)
	default:
		p.Line("hysteresis  not detected: rising against falling rates %+.1f %% [%+.1f – %+.1f]",
			100*h.Shift, 100*h.Lo, 100*h.Hi)
	}
}

// about returns the valid steps of blocks.
func about(steps []Tried) (out []Tried) {
	for _, t := range steps {
		block := t.Phase == Shuffled || t.Phase == Rising || t.Phase == Falling
		if block && t.Outcome != Invalid {
			out = append(out, t)
		}
	}
	return out
}

// doubts counts the verdict's rules that open steps broke.
func doubts(steps []Tried) []string {
	var names []string
	counts, all := map[string]int{}, 0
	for _, t := range steps {
		if t.RatePerS == 0 {
			continue
		}
		all++
		for _, rule := range t.Suspect {
			if counts[rule]++; counts[rule] == 1 {
				names = append(names, rule)
			}
		}
	}
	var out []string
	for _, name := range names {
		out = append(out, fmt.Sprintf("rule %s: SUSPECT in %d of %d open steps", name, counts[name],
			all))
	}
	return out
}

// boundary plots the number of steps that met the objectives, by rate.
func boundary(p *format.Page, steps []Tried) {
	steps = about(steps)
	if len(steps) == 0 {
		return
	}
	lo, hi := math.Inf(1), 0.0
	for _, t := range steps {
		lo, hi = min(lo, t.RatePerS), max(hi, t.RatePerS)
	}
	var retained, all [boundBins]int
	for _, t := range steps {
		i := int(boundBins * (t.RatePerS - lo) / max(hi-lo, 1e-9))
		i = min(i, boundBins-1)
		all[i]++
		if t.Outcome == Met {
			retained[i]++
		}
	}
	p.Line("\n%17s  met", "rate")
	for i := range all {
		if all[i] == 0 {
			continue
		}
		from, to := lo+(hi-lo)*float64(i)/boundBins, lo+(hi-lo)*float64(i+1)/boundBins
		p.Line("%7s – %7s  %-9s %s", units.FineRate(from), units.FineRate(to),
			fmt.Sprintf("%d of %d", retained[i], all[i]), bar(float64(retained[i])/float64(all[i])))
	}
}

// bar draws a share of barWidth, to an eighth of a character.
func bar(share float64) string {
	eighths := int(math.Round(min(max(share, 0), 1) * barWidth * 8))
	out := strings.Repeat("█", eighths/8)
	if remaining := eighths % 8; remaining > 0 {
		out += string([]rune("▏▎▍▌▋▊▉")[remaining-1])
	}
	return out
}

// CurveText prints latency by load, with a plot on a logarithmic scale: full bars end at p50,
// shaded ones at p99.
func CurveText(w io.Writer, points []Point) error {
	p := &format.Page{}
	p.Line("%5s %9s %10s %10s %10s %10s %8s  p50 █ and p99 ░, logarithmic", "share", "rate/s",
		"p50", "p90", "p99", "p99.9", "CPU µs")
	lo, hi := math.Inf(1), 0.0
	for _, point := range points {
		for _, q := range point.Quantiles {
			if q.Ns > 0 && q.Name != "p99.9" {
				lo, hi = min(lo, float64(q.Ns)), max(hi, float64(q.Ns))
			}
		}
	}
	valueAt := func(ns int64) int {
		if ns == 0 {
			return 0
		}
		if hi <= lo {
			return barWidth / 2
		}
		return 2 + int(math.Round((barWidth-2)*math.Log(float64(ns)/lo)/math.Log(hi/lo)))
	}
	lacking, stalled := map[string]int64{}, map[string][]string{}
	for _, point := range points {
		cells := map[string]string{}
		ns := map[string]int64{}
		for _, q := range point.Quantiles {
			cells[q.Name], ns[q.Name] = units.Absent, q.Ns
			if q.Ns > 0 {
				cells[q.Name] = units.Duration(float64(q.Ns))
			} else if point.Answers > 0 {
				lacking[q.Name] = q.RequiredSamples
			}
			if q.WithStalls {
				stalled[q.Name] = append(stalled[q.Name], units.PercentTo(point.Share, 0))
			}
		}
		full := valueAt(ns["p50"])
		p.Line("%3.0f %% %9s %10s %10s %10s %10s %8.2f  %s%s", 100*point.Share,
			units.Rate(point.RatePerS), cells["p50"], cells["p90"], cells["p99"], cells["p99.9"],
			point.CPUPerRequest/1e3, strings.Repeat("█", full),
			strings.Repeat("░", max(valueAt(ns["p99"])-full, 0)))
	}
	for _, q := range curveQuantiles {
		if need := lacking[q.name]; need > 0 {
			p.Line("%s %s: needs at least %s responses", units.Absent, q.name, units.Count(need))
		}
	}
	for _, q := range curveQuantiles {
		if shares := stalled[q.name]; len(shares) > 0 {
			p.Line("%s at %s: with the machine's stalls, unknown without them", q.name,
				strings.Join(shares, ", "))
		}
	}
	for _, point := range points {
		if len(point.Suspect) > 0 {
			p.Line("doubt at %.0f %%: %s", 100*point.Share, strings.Join(point.Suspect, ", "))
		}
		if point.Excluded > 0 {
			p.Line("left out at %.0f %%: %d of %d windows: %s", 100*point.Share, point.Excluded,
				point.Excluded+point.Replicates, point.Reason)
		}
	}
	return p.To(w)
}

// SweepText prints a sweep of connections or rates.
func SweepText(w io.Writer, rows []Tried, objectives []slo.Objective) error {
	p := &format.Page{}
	most := 0.0
	for _, t := range rows {
		most = max(most, t.ThroughputPerS)
	}
	p.Line("%9s %11s %10s %10s %8s  %-7s", "offered", "answered/s", "p50", "p99", "CPU µs", "")
	for _, t := range rows {
		offered, p50, p99 := units.Rate(t.RatePerS)+"/s", units.Absent, units.Absent
		if t.RatePerS == 0 {
			offered = fmt.Sprintf("%d conn", t.Connections)
		}
		if t.P99Ns > 0 {
			p50, p99 = units.Duration(float64(t.P50Ns)), units.Duration(float64(t.P99Ns))
		}
		p.Line("%9s %11s %10s %10s %8.2f  %-7s %s%s", offered, units.Rate(t.ThroughputPerS), p50,
			p99, t.CPUPerRequest/1e3, t.Outcome, bar(t.ThroughputPerS/max(most, 1e-9)), t.stalls())
	}
	if n := len(rows); n > 0 && rows[n-1].Outcome != Met && rows[n-1].RatePerS > 0 {
		p.Line("the sweep ended at %s/s: %s", units.Rate(rows[n-1].RatePerS), rows[n-1].Reason)
	}
	if n := len(rows); n > 0 && rows[n-1].RatePerS == 0 {
		p.Line("closed load: latency follows from connections and throughput (Little's law)")
	}
	if len(objectives) > 0 {
		p.Line("objectives that steps met or missed: %s", slo.Text(objectives))
	}
	return p.To(w)
}
