package capacity

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/record"
	"prony.example/stats"
)

// Shares lists the shares of the capacity at which a curve has its points.
var Shares = []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95}

// Replicates is the number of steps for each point of a curve.
const Replicates = 2

// Parameters of a curve's percentiles.
const (
	curveConfidence = 0.95
	stretchMax      = 5 // times the window, for rates that are too low for a p99
)

var curveQuantiles = []struct {
	name string
	q    float64
}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}}

// Point is the latency at one share of the capacity, over all its replicates.
type Point struct {
	Share      float64 `json:"share"`
	RatePerS   float64 `json:"ratePerS"`
	Replicates int     `json:"replicates"` // number of valid replicates
	Excluded   int     `json:"excluded,omitempty"`
	Reason     string  `json:"reason,omitempty"` // of the last excluded replicate
	// the verdict's rules that valid replicates broke
	Suspect        []string   `json:"suspectRules,omitempty"`
	ThroughputPerS float64    `json:"throughputPerS"`
	CPUPerRequest  float64    `json:"generatorNsPerRequest"`
	Answers        int64      `json:"answers"` // number of responses
	Quantiles      []Quantile `json:"quantiles"`

	times *hdrhistogram.Histogram
	done  int64
	cpuNs float64
	runNs int64
	// stalled reports whether stalls of the machine were recorded; free has the percentiles without
	// them of the replicates in which they are known, in ns, by name.
	stalled bool
	free    map[string][]float64
}

// Quantile is a percentile of response time; Ns is 0 with fewer than RequiredSamples responses.
type Quantile struct {
	Name            string `json:"name"`
	Ns              int64  `json:"ns"`
	WithStalls      bool   `json:"withStalls,omitempty"` // unknown without the machine's stalls
	RequiredSamples int64  `json:"requiredSamples"`
}

// Curve measures response time at shares of a capacity. Shares and replicates run in one order that
// is shuffled by the seed, so that drift does not look like an effect of load. The histograms of a
// share's replicates are merged. If stalls of the machine were recorded, a percentile is the median
// of those of the replicates without stalls. Replicates in which the service or the generator fell
// behind have no valid latency and are excluded.
func Curve(ctx context.Context, o Options, capacityPerS float64, shares []float64,
	replicates int) ([]Point, error) {
	if !(capacityPerS > 0) {
		return nil, fmt.Errorf("measure curve: the capacity must be greater than 0, got "+
			"%v/s", capacityPerS)
	}
	s, err := newSession(o)
	if err != nil {
		return nil, err
	}
	if _, err := s.quiet(ctx); err != nil {
		return nil, err
	}
	points := make([]Point, len(shares))
	var order []int
	for i, share := range shares {
		points[i] = Point{Share: share, RatePerS: share * capacityPerS}
		for range replicates {
			order = append(order, i)
		}
	}
	s.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for _, i := range order {
		if err := s.replicate(ctx, &points[i]); err != nil {
			return nil, err
		}
	}
	for i := range points {
		points[i].settle()
	}
	return points, nil
}

func (s *session) replicate(ctx context.Context, p *Point) error {
	want := spareNeeds * float64(stats.QuantileNeeds(0.99, curveConfidence)) / p.RatePerS
	window := max(s.Window, min(time.Duration(want*1e9), stretchMax*s.Window))
	t, l, err := s.offer(ctx, Step{Phase: AtShare, RatePerS: p.RatePerS, Window: window})
	if err != nil {
		return err
	}
	times, _ := l.ResponseTime.Histogram() // a damaged histogram counts as missing
	switch {
	case t.overload != "":
		p.Excluded, p.Reason = p.Excluded+1, t.overload
	case t.instrument != "":
		p.Excluded, p.Reason = p.Excluded+1, t.instrument
	case times == nil:
		p.Excluded, p.Reason = p.Excluded+1, "the record contains no histogram"
	default:
		p.add(times, l)
		for _, rule := range t.Suspect {
			if !slices.Contains(p.Suspect, rule) {
				p.Suspect = append(p.Suspect, rule)
			}
		}
		p.done += l.Done
		p.runNs += l.WindowNs
		p.cpuNs += l.Generator.CPUPerRequestNs * float64(l.Done)
	}
	if t.overload != "" {
		_, err = s.quiet(ctx)
	}
	return err
}

func (p *Point) add(times *hdrhistogram.Histogram, l *record.Load) {
	p.Replicates++
	p.stalled = p.stalled || stalled(l)
	for _, q := range curveQuantiles {
		if x := record.StallFreeOf(l.StallFree, q.q); x != nil {
			if p.free == nil {
				p.free = map[string][]float64{}
			}
			p.free[q.name] = append(p.free[q.name], float64(x.Ns))
		}
	}
	if p.times == nil {
		p.times = times
		return
	}
	// All histograms of the generator have the same range, so no value is dropped.
	p.times.Merge(times)
}

func (p *Point) settle() {
	if p.times != nil {
		p.Answers = p.times.TotalCount()
	}
	if p.done > 0 {
		p.ThroughputPerS = float64(p.done) / (float64(p.runNs) / 1e9)
		p.CPUPerRequest = p.cpuNs / float64(p.done)
	}
	lower := int64(0)
	for _, q := range curveQuantiles {
		out := Quantile{Name: q.name, RequiredSamples: stats.QuantileNeeds(q.q, curveConfidence)}
		if p.Answers >= out.RequiredSamples {
			raw := p.times.ValueAtQuantile(100 * q.q)
			out.Ns, out.WithStalls = p.withoutStalls(q.name, raw, lower)
			lower = out.Ns
		}
		p.Quantiles = append(p.Quantiles, out)
	}
}

// withoutStalls returns a percentile without the machine's stalls. With is true if it is raw
// because it is unknown in a replicate, or would be below a lower percentile.
func (p *Point) withoutStalls(name string, raw, lower int64) (ns int64, with bool) {
	if !p.stalled {
		return raw, false
	}
	free := p.free[name]
	if len(free) < p.Replicates {
		return raw, true
	}
	if ns := int64(stats.Median(free)); ns >= lower {
		return ns, false
	}
	return raw, true
}

// Concurrency runs the closed load for each number of connections, in an order that is shuffled by
// the seed, after a warm-up. The results are sorted by number.
func Concurrency(ctx context.Context, o Options, connections []int) ([]Tried, error) {
	s, err := newSession(o)
	if err != nil {
		return nil, err
	}
	if _, _, err := s.warmUp(ctx); err != nil {
		return nil, err
	}
	var out []Tried
	for _, i := range s.rng.Perm(len(connections)) {
		var t *Tried
		t, _, err = s.offer(ctx, Step{Phase: Sweep, Connections: connections[i], Window: s.Window})
		if err != nil {
			break // the steps so far are results
		}
		out = append(out, *t)
	}
	slices.SortStableFunc(out, func(a, b Tried) int { return a.Connections - b.Connections })
	return out, err
}

// Stress runs rising rates until one fails or the generator cannot keep up; the last result says
// which. Without objectives a rate fails if the service falls behind or responses fail.
func Stress(ctx context.Context, o Options, rates []float64) ([]Tried, error) {
	s, err := newSession(o)
	if err != nil {
		return nil, err
	}
	if _, _, err := s.warmUp(ctx); err != nil {
		return nil, err
	}
	if _, err := s.quiet(ctx); err != nil {
		return nil, err
	}
	var out []Tried
	for _, rate := range rates {
		word := Invalid
		for again := 0; word == Invalid && again <= repeats; again++ {
			t, _, err := s.offer(ctx, Step{Phase: Sweep, RatePerS: rate, Window: s.window(rate)})
			if err != nil {
				return out, err
			}
			out, word = append(out, *t), t.Outcome
			if word == Met {
				break
			}
			if _, err := s.quiet(ctx); err != nil {
				return out, err
			}
		}
		if word != Met {
			break
		}
	}
	return out, nil
}

// Limits of the ranges of sweeps.
const (
	connectionsMax = 1 << 20
	ratesMax       = 1e8 // per second; the limit of package pace
	rateSteps      = 8
)

// Connections parses numbers of connections: a list such as 50,100,200, or a range that doubles,
// such as 1..256, and includes its end.
func Connections(text string) ([]int, error) {
	bounds, isRange, err := span(text, connectionsMax)
	if err != nil {
		return nil, err
	}
	var out []int
	for _, v := range bounds {
		if v != float64(int(v)) {
			return nil, fmt.Errorf("%q: %v is not a whole number of connections", text, v)
		}
		out = append(out, int(v))
	}
	if !isRange {
		return out, nil
	}
	from, to := out[0], out[1]
	out = out[:0]
	for n := from; n < to; n *= 2 {
		out = append(out, n)
	}
	return append(out, to), nil
}

// Rates parses rising rates: a list such as 50000,100000, or a range of eight rates at equal
// distances, such as 1000..8000.
func Rates(text string) ([]float64, error) {
	bounds, isRange, err := span(text, ratesMax)
	if err != nil || !isRange {
		return bounds, err
	}
	var out []float64
	for i := range rateSteps {
		out = append(out, bounds[0]+(bounds[1]-bounds[0])*float64(i)/(rateSteps-1))
	}
	return out, nil
}

// span parses the numbers of a list or the two of a range.
func span(text string, most float64) (out []float64, isRange bool, err error) {
	parts := strings.Split(text, ",")
	if from, to, ok := strings.Cut(text, ".."); ok {
		parts, isRange = []string{from, to}, true
	}
	for _, part := range parts {
		v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || !(v > 0 && v <= most) {
			return nil, false, fmt.Errorf("%q must be a list such as 50,100,200 or a range such "+
				"as 1..256, with numbers up to %.0f", text, most)
		}
		out = append(out, v)
	}
	if !slices.IsSorted(out) || len(slices.Compact(slices.Clone(out))) < len(out) {
		return nil, false, fmt.Errorf("%q must be a rising sequence of numbers", text)
	}
	return out, isRange, nil
}
