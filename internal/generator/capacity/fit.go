package capacity

import (
	"math"
	"sync"
)

// The model of a boundary: a step at rate r holds with probability
//
//	lapseHigh + (1 - lapseLow - lapseHigh) * Phi((ln c - ln r) / s)
//
// c is the capacity, the rate at which half of the steps hold, and s is its width in logarithms:
// how far chance moves the boundary from step to step. The lapses allow for events that are
// independent of the rate, such as a pause far below c; without them, a single one would widen the
// whole curve (Klein, "Measuring, estimating, and understanding the psychometric function",
// Perception & Psychophysics 63(8), 2001).
//
// Both parameters are on a grid, as in Kontsevich and Tyler, "Bayesian adaptive estimation of
// psychometric slope and threshold", Vision Research 39, 1999. The posterior needs no start values.
// It also exists for data in which all steps below a rate hold and all above it fail, for which a
// likelihood fit has no maximum. The prior is flat in ln c and grows with the root of s. Steps
// whose rates depend on earlier results make s look smaller than it is (Kaernbach, "Slope bias of
// psychometric functions derived from adaptive data", same issue as Klein); with the root, the
// interval has its nominal coverage, which the tests simulate.
const (
	lapseLow  = 0.02
	lapseHigh = 0.01

	widthMin   = 0.002 // prior of s
	widthMax   = 0.2
	widthCells = 12
	rateCells  = 100
)

// The prior of ln c reaches priorReach beyond the bracket on both sides. It must end, because with
// the lapses every rate, however far, has a small probability of being the boundary. If edgeMass or
// more lies near an end, that end is moved outwards. Finally the grid is narrowed to the part with
// all but tailMass on each side.
const (
	priorReach = 0.4
	edgeCells  = rateCells / 20
	edgeMass   = 0.1
	widenings  = 8
	tailMass   = 1e-5
)

// observation is a step's result for the model.
type observation struct {
	x      float64 // ln rate
	passed bool
	way    float64 // direction of approach: +1 from below, -1 from above, 0 neither
}

// A search needs millions of probabilities, so they come from a table over the distance from the
// boundary in widths, with linear interpolation. Beyond its ends only the lapses count.
const (
	tableReach = 6
	tableCells = 64 // per width
)

// chances returns tables of the probability to hold, its logarithm, and the logarithm of the
// probability to fail.
var chances = sync.OnceValue(func() (out struct{ heldChance, logHold, logBreak []float64 }) {
	for i := range 2*tableReach*tableCells + 2 {
		phi := 0.5 * math.Erfc((float64(i)/tableCells-tableReach)/math.Sqrt2)
		q := lapseHigh + (1-lapseLow-lapseHigh)*phi
		out.heldChance = append(out.heldChance, q)
		out.logHold = append(out.logHold, math.Log(q))
		out.logBreak = append(out.logBreak, math.Log(1-q))
	}
	return out
})

func lookUp(table []float64, z float64) float64 {
	position := (min(max(z, -tableReach), tableReach) + tableReach) * tableCells
	i := int(position)
	return table[i] + (position-float64(i))*(table[i+1]-table[i])
}

// posterior is the distribution of a boundary's parameters: weights on a grid with the sum 1.
type posterior struct {
	centers []float64   // ln c
	widths  []float64   // s
	weight  [][]float64 // by width, then center
	margin  []float64   // of the centers
}

// fit returns the posterior of a boundary that lo and hi (ln rates) bracket.
func fit(observations []observation, lo, hi float64) *posterior {
	lo, hi = lo-priorReach, hi+priorReach
	p := believe(observations, lo, hi)
	for range widenings {
		left, right := total(p.margin[:edgeCells]), total(p.margin[rateCells-edgeCells:])
		if left < edgeMass && right < edgeMass {
			break
		}
		if left >= edgeMass {
			lo -= priorReach
		}
		if right >= edgeMass {
			hi += priorReach
		}
		p = believe(observations, lo, hi)
	}
	cell := (hi - lo) / (rateCells - 1)
	return believe(
		observations,
		max(p.center(tailMass)-2*cell, lo),
		min(p.center(1-tailMass)+2*cell, hi),
	)
}

func total(xs []float64) (sum float64) {
	for _, x := range xs {
		sum += x
	}
	return sum
}

func believe(observations []observation, lo, hi float64) *posterior {
	p := &posterior{margin: make([]float64, rateCells)}
	for i := range rateCells {
		p.centers = append(p.centers, lo+(hi-lo)*float64(i)/(rateCells-1))
	}
	top := math.Inf(-1)
	for j := range widthCells {
		width := widthMin * math.Pow(widthMax/widthMin, float64(j)/(widthCells-1))
		row := make([]float64, rateCells)
		for i, center := range p.centers {
			row[i] = logLikelihood(observations, center, width, 0) + math.Log(width)/2
			top = max(top, row[i])
		}
		p.widths, p.weight = append(p.widths, width), append(p.weight, row)
	}
	sum := 0.0
	for _, row := range p.weight {
		for i := range row {
			row[i] = math.Exp(row[i] - top)
			sum += row[i]
		}
	}
	for _, row := range p.weight {
		for i := range row {
			row[i] /= sum
			p.margin[i] += row[i]
		}
	}
	return p
}

// logLikelihood returns the log-likelihood of the observations. Approaching from below moves the
// center up by half of the shift, from above down by half of it.
func logLikelihood(observations []observation, center, width, shift float64) float64 {
	tables := chances()
	sum := 0.0
	for _, o := range observations {
		table := tables.logBreak
		if o.passed {
			table = tables.logHold
		}
		sum += lookUp(table, (o.x-center-o.way*shift/2)/width)
	}
	return sum
}

// center returns a quantile of ln c, with linear interpolation within a cell.
func (p *posterior) center(q float64) float64 {
	return quantile(p.centers, p.margin, q)
}

func quantile(values, weights []float64, q float64) float64 {
	half := (values[1] - values[0]) / 2
	sum := 0.0
	for i, w := range weights {
		if sum+w >= q && w > 0 {
			return values[i] + half*(2*(q-sum)/w-1)
		}
		sum += w
	}
	return values[len(values)-1] + half
}

// width returns the width at the mean of ln s.
func (p *posterior) width() float64 {
	sum := 0.0
	for j, row := range p.weight {
		for _, w := range row {
			sum += w * math.Log(p.widths[j])
		}
	}
	return math.Exp(sum)
}

// at returns the ln rate at which a step holds with probability q, averaged over the posterior.
func (p *posterior) at(q float64) float64 {
	reach := 6 * widthMax
	lo, hi := p.centers[0]-reach, p.centers[rateCells-1]+reach
	for range 20 { // to a millionth of the reach
		mid := (lo + hi) / 2
		if p.holds(mid) > q {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2
}

func (p *posterior) holds(x float64) float64 {
	table, sum := chances().heldChance, 0.0
	for j, row := range p.weight {
		for i, w := range row {
			if w < 1e-7 {
				continue
			}
			sum += w * lookUp(table, (x-p.centers[i])/p.widths[j])
		}
	}
	return sum
}

// The shift is estimated on a grid within shiftMax, in two passes; the second grid covers the
// result of the first.
const (
	shiftMax    = 0.5
	shiftCells  = 41
	shiftPasses = 2
)

// shift estimates how much higher, in logarithms, the boundary is when approached from below: the
// median and the quantiles at the tails.
func (p *posterior) shift(observations []observation, tail float64) (lo, mid, hi float64) {
	values, weights := make([]float64, shiftCells), []float64(nil)
	from, to := -shiftMax, shiftMax
	for range shiftPasses {
		for k := range values {
			values[k] = from + (to-from)*float64(k)/(shiftCells-1)
		}
		weights = p.shiftWeights(observations, values)
		cell := (to - from) / (shiftCells - 1)
		from = quantile(values, weights, tailMass) - cell
		to = quantile(values, weights, 1-tailMass) + cell
	}
	return quantile(values, weights, tail), quantile(values, weights, 0.5),
		quantile(values, weights, 1-tail)
}

// shiftWeights returns the posterior weight of each shift, averaged over the center. It uses the
// posterior's width. An existing shift has increased that width, so small shifts are not
// detectable.
func (p *posterior) shiftWeights(observations []observation, shifts []float64) []float64 {
	width := p.width()
	reach := 2 * max(p.center(0.975)-p.center(0.025), width)
	logs := make([][]float64, len(shifts))
	top := math.Inf(-1)
	for k, shift := range shifts {
		for i := range shiftCells {
			center := p.center(0.5) + reach*(2*float64(i)/(shiftCells-1)-1)
			l := logLikelihood(observations, center, width, shift)
			logs[k] = append(logs[k], l)
			top = max(top, l)
		}
	}
	weights := make([]float64, len(shifts))
	for k, row := range logs {
		for _, l := range row {
			weights[k] += math.Exp(l - top)
		}
	}
	sum := total(weights)
	for k := range weights {
		weights[k] /= sum
	}
	return weights
}
