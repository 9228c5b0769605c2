package capacity

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"prony.example/record/slo"
)

// Parameters of the search.
const (
	firstShare   = 0.8  // of the peak: first rate of the bracket
	upBy         = 1.25 // factor of the bracket's steps upwards
	downBy       = 1.5  // factor downwards; each is larger than the previous one
	topPeaks     = 4    // times the peak: the highest rate
	floorShare   = 1e-3 // of the peak: the lowest rate
	windowShare  = 12   // no window exceeds the budget divided by this
	repeats      = 2    // of an invalid step
	invalidMax   = 15   // invalid steps of a search
	stepsMax     = 400  // of all kinds, in case steps take no time
	plannedSteps = 22   // near the boundary
	stretchedMax = time.Minute
	leastBlocks  = 3    // one of each kind
	leastSteps   = 6    // near the boundary, for an interval if the budget ends early
	ceilingNear  = 0.7  // share of the generator limit, as in the verdict's rule
	wideWidth    = 0.1  // from which on the result has a warning
	shiftTold    = 0.01 // smaller hysteresis is not reported
)

// levels are a block's probabilities of holding: steps near one half determine the boundary, the
// others its width.
var levels = []float64{0.85, 0.62, 0.38, 0.15}

// Found is the result of a search.
type Found struct {
	SLO    string `json:"slo"`
	Found  bool   `json:"found"`
	Reason string `json:"reason,omitempty"` // why no capacity was found
	// AtLeastPerS is, if no capacity was found, the highest rate that met the objectives below all
	// rates that missed them. It is not an estimate and has no interval. MissedPerS is the lowest
	// rate that missed them; 0: none.
	AtLeastPerS float64 `json:"atLeastPerS,omitempty"`
	MissedPerS  float64 `json:"missedPerS,omitempty"`

	RatePerS     float64 `json:"ratePerS,omitempty"` // the rate at which half of the steps hold
	LoPerS       float64 `json:"loPerS,omitempty"`   // its interval
	HiPerS       float64 `json:"hiPerS,omitempty"`
	Confidence   float64 `json:"confidence"`
	ReliablePerS float64 `json:"reliablePerS,omitempty"` // the rate at which 95 % of the steps hold
	Width        float64 `json:"width,omitempty"`        // relative standard deviation

	PeakPerS    float64    `json:"peakPerS"`              // closed, from the warm-up
	CeilingPerS float64    `json:"ceilingPerS,omitempty"` // generator limit; 0: unknown
	MetPerS     float64    `json:"metPerS,omitempty"`     // highest rate that met the objectives
	Hysteresis  Hysteresis `json:"hysteresis"`
	Warnings    []string   `json:"warnings,omitempty"`
	Seed        uint64     `json:"seed"`
	WindowNs    int64      `json:"windowNs"`
	ElapsedNs   int64      `json:"elapsedNs"`
	Steps       []Tried    `json:"steps"`
}

// Hysteresis compares the boundary when approached from below and from above. Shift is how much
// higher it is from below, relative, with its interval.
type Hysteresis struct {
	Checked   bool    `json:"checked"`
	Differs   bool    `json:"differs"`
	Shift     float64 `json:"shift"`
	Lo        float64 `json:"lo"`
	Hi        float64 `json:"hi"`
	BelowPerS float64 `json:"belowPerS,omitempty"`
	AbovePerS float64 `json:"abovePerS,omitempty"`
}

// search is a running Find.
type search struct {
	*session
	result       *Found
	observations []observation
	extra        time.Duration // longest time of a step besides lead-in and window
	invalid      int
	last         string   // reason of the last invalid step
	rule         string   // rule of the verdict behind it
	doubt        []string // all rules that it broke
}

var errBudget = errors.New("the time budget is used up")

// giveUp ends a search with a reason, which is a result and not an error.
type giveUp struct{ reason string }

func (g giveUp) Error() string { return g.reason }

// Find searches for the highest rate that meets the objectives. If it finds none, the result has a
// Reason. Errors come from the options or from Offer, with the steps so far.
func Find(ctx context.Context, o Options) (*Found, error) {
	if err := o.CheckSearch(); err != nil {
		return nil, err
	}
	base, err := newSession(o)
	if err != nil {
		return nil, err
	}
	s := &search{session: base, result: &Found{
		SLO: slo.Text(o.SLO), Confidence: o.Confidence, CeilingPerS: o.CeilingPerS, Seed: o.Seed,
		WindowNs: int64(o.Window),
	}}
	err = s.run(ctx)
	if g, is := errors.AsType[giveUp](err); is {
		s.result.Reason, err = g.reason, nil
	} else if err != nil {
		s.result.Reason = err.Error()
	}
	if !s.result.Found {
		s.result.AtLeastPerS, s.result.MissedPerS = known(s.tried)
	}
	s.result.Steps, s.result.ElapsedNs = s.tried, int64(s.elapsed())
	return s.result, err
}

// known returns the limits that the steps of an unfinished search show.
func known(steps []Tried) (atLeast, broke float64) {
	for _, t := range steps {
		if t.Outcome == Missed && (broke == 0 || t.RatePerS < broke) {
			broke = t.RatePerS
		}
	}
	for _, t := range steps {
		if t.Outcome == Met && (broke == 0 || t.RatePerS < broke) {
			atLeast = max(atLeast, t.RatePerS)
		}
	}
	return atLeast, broke
}

// CheckSearch returns an error if the options of a search are invalid.
func (o Options) CheckSearch() error {
	switch {
	case len(o.SLO) == 0:
		return fmt.Errorf("find capacity: objectives are missing; add some, such as p99<50ms")
	case slices.ContainsFunc(o.SLO, slo.Objective.IsThroughput):
		return fmt.Errorf("find capacity: an objective limits the throughput, which the search " +
			"itself varies; remove this objective")
	case !(o.Precision >= 0):
		return fmt.Errorf("find capacity: the precision must not be negative, got %v", o.Precision)
	case !(o.Confidence > 0 && o.Confidence < 1):
		return fmt.Errorf("find capacity: the confidence level must be between 0 and 1, got "+
			"%v", o.Confidence)
	case o.Budget <= 0:
		return fmt.Errorf("find capacity: the budget must be greater than 0, got %v", o.Budget)
	}
	return nil
}

func (s *search) run(ctx context.Context) error {
	f := s.result
	peak, steady, err := s.warmUp(ctx)
	if err != nil {
		return err
	}
	f.PeakPerS = peak
	if !steady {
		f.warn("the throughput of the closed warm-up was not steady after %d windows", warmupsMax)
	}
	if f.CeilingPerS > 0 && peak > ceilingNear*f.CeilingPerS {
		f.warn("the maximum throughput of the warm-up is %.0f %% of the generator limit: use "+
			"more cores for the load",
			100*peak/f.CeilingPerS)
	}
	if err := s.rest(ctx, 0); err != nil {
		return err
	}
	lo, hi, err := s.bracket(ctx)
	if errors.Is(err, errBudget) {
		return giveUp{"the budget ended before the search found a rate that meets the objectives " +
			"and a rate that misses them; raise the budget"}
	}
	if err != nil {
		return err
	}
	bracketed := len(s.observations)
	s.stretch()
	p, err := s.blocks(ctx, math.Log(lo), math.Log(hi))
	if errors.Is(err, errBudget) {
		if len(s.observations)-bracketed < leastSteps {
			return giveUp{fmt.Sprintf("the budget ended when only the range was known: the "+
				"objectives were met at %.0f requests/s and missed at %.0f requests/s; raise the "+
				"budget", lo, hi)}
		}
		f.warn("the budget ended before the confidence interval was within ±%.1f "+
			"%%", 100*s.Precision)
		err = nil
	}
	if err != nil {
		return err
	}
	s.conclude(p)
	return nil
}

func (f *Found) warn(format string, args ...any) {
	f.Warnings = append(f.Warnings, fmt.Sprintf(format, args...))
}

// rest waits for quiet after an overload at a rate.
func (s *search) rest(ctx context.Context, rate float64) error {
	ok, err := s.quiet(ctx)
	if err != nil || ok {
		return err
	}
	if rate == 0 {
		return giveUp{"single requests fail although there is no load; the list of steps shows " +
			"the errors"}
	}
	return giveUp{fmt.Sprintf("after the overload at %.0f requests/s, the service did not "+
		"recover within %d checks: it may not recover by itself", rate, quietTries)}
}

// lowest returns the rate below which a step takes too long or is not of interest.
func (s *search) lowest() float64 {
	longest := max(s.Budget/windowShare, s.Window)
	return max(floorShare*s.result.PeakPerS, spareNeeds*float64(s.need)/longest.Seconds())
}

// step runs a rate until the result is valid, with at most repeats repetitions.
func (s *search) step(ctx context.Context, phase string, rate, way float64) (string, error) {
	window := s.window(rate)
	for range 1 + repeats {
		if len(s.tried) >= stepsMax || s.elapsed()+s.bare(window)+s.extra > s.Budget {
			return "", errBudget
		}
		from := s.Now()
		t, _, err := s.offer(ctx, Step{Phase: phase, RatePerS: rate, Window: window})
		if err != nil {
			return "", err
		}
		word, why, doubt := t.Outcome, t.Reason, t.named
		if word != Met {
			if err := s.rest(ctx, rate); err != nil {
				return "", err
			}
		}
		s.extra = max(s.extra, time.Duration(s.Now()-from)-s.bare(window))
		if word != Invalid {
			s.observations = append(s.observations, observation{math.Log(rate), word == Met, way})
			if word == Met {
				s.result.MetPerS = max(s.result.MetPerS, rate)
			}
			return word, nil
		}
		s.last, s.rule, s.doubt = why, t.rule, doubt
		if s.invalid++; s.invalid > invalidMax {
			return "", giveUp{s.instrument(rate)}
		}
	}
	return Invalid, nil
}

// bare returns the time of a step without its drain and the wait for quiet after it.
func (s *search) bare(window time.Duration) time.Duration {
	return time.Duration(float64(window) * s.leadShare())
}

// leadShare returns the ratio of lead-in plus window to window.
func (s *search) leadShare() float64 { return 1 + float64(s.Lead)/float64(s.Window) }

// stretch sets the windows near the boundary to the length that allows plannedSteps of them within
// the budget. At the begin of a short window the queue is emptier than in the steady state, so its
// percentiles are mostly lower than in a long run, and it holds at rates that the service cannot
// sustain. Few long windows give as much precision as many short ones.
func (s *search) stretch() {
	perItem := (s.Budget-s.elapsed())/plannedSteps - s.extra
	s.least = min(time.Duration(float64(perItem)/s.leadShare()), stretchedMax)
	s.result.WindowNs = int64(max(s.Window, s.least))
}

// instrument returns the reason if steps are invalid.
func (s *search) instrument(rate float64) string {
	owner := ""
	if slices.Contains([]string{"lag", "generator", "delivered"}, s.rule) {
		owner = "the generator itself is the limit"
	}
	if owner != "" && slices.Contains(s.doubt, "run delay") {
		owner = "the machine is too busy: other processes run on the generator's cores,"
	}
	out := fmt.Sprintf("no step at %.0f requests/s gave a valid result: %s", rate, s.last)
	if owner != "" {
		out = fmt.Sprintf("%s at %.0f requests/s: %s", owner, rate, s.last)
	}
	if s.CeilingPerS > 0 {
		out += fmt.Sprintf("; the generator limit against a null server is %.0f "+
			"requests/s", s.CeilingPerS)
	}
	if s.result.MetPerS > 0 {
		out += fmt.Sprintf("; the objectives were met up to %.0f requests/s", s.result.MetPerS)
	}
	return out
}

// bracket finds a rate that met the objectives and a higher one that missed them.
func (s *search) bracket(ctx context.Context) (lo, hi float64, err error) {
	top, floor := topPeaks*s.result.PeakPerS, s.lowest()
	if s.CeilingPerS > 0 {
		top = min(top, s.CeilingPerS)
	}
	rate, down := min(firstShare*s.result.PeakPerS, top), downBy
	if rate < floor {
		return 0, 0, giveUp{fmt.Sprintf("the objectives need %d responses in each step, which "+
			"takes too long for the budget at %.0f requests/s; raise the budget", s.need, rate)}
	}
	blocked, above, again := 0.0, 0.0, false
	for {
		word, err := s.step(ctx, Bracket, rate, 0)
		switch {
		case err != nil:
			return 0, 0, err
		case word == Met:
			lo = rate
		case word == Missed:
			above, hi = hi, rate
		default:
			blocked = rate
		}
		switch {
		case lo > 0 && hi > 0:
			return lo, hi, nil
		case lo > 0 && blocked > 0:
			return 0, 0, giveUp{s.instrument(blocked)}
		case lo >= top && top == s.CeilingPerS:
			return 0, 0, giveUp{fmt.Sprintf("the generator itself is the limit: the objectives "+
				"were met at the generator limit against a null server, %.0f requests/s", top)}
		case lo >= top:
			return 0, 0, giveUp{fmt.Sprintf("the objectives were met at every rate up to %.0f "+
				"requests/s", lo)}
		case lo > 0:
			rate = min(rate*upBy, top)
		case rate <= floor && blocked == rate:
			return 0, 0, giveUp{s.instrument(rate)}
		case rate <= floor && !again:
			// A single stall of the machine fails a step, and no later step compensates for it.
			again, hi = true, above
		case rate <= floor:
			return 0, 0, giveUp{s.tooSlow(rate)}
		default:
			rate = max(rate/down, floor)
			down *= downBy
		}
	}
}

// tooSlow returns the reason if the objectives are missed at the lowest rate.
func (s *search) tooSlow(rate float64) string {
	out := fmt.Sprintf("the objectives are missed at the lowest rate, %.3g requests/s: "+
		"%s", rate, s.why())
	if rate > floorShare*s.result.PeakPerS {
		out += fmt.Sprintf("; at lower rates, steps of the required %d responses are too long "+
			"for the budget: raise the budget", s.need)
	}
	return out
}

// why returns the reason of the last missed step.
func (s *search) why() string {
	for _, t := range slices.Backward(s.tried) {
		if t.Outcome == Missed {
			return t.Reason
		}
	}
	return "unknown"
}

// blocks runs steps near the boundary until the interval is narrow enough, and returns the
// posterior.
func (s *search) blocks(ctx context.Context, lo, hi float64) (*posterior, error) {
	p := fit(s.observations, lo, hi)
	kinds := []string{Shuffled, Rising, Falling}
	tail := (1 - s.Confidence) / 2
	for done := 0; ; {
		for _, k := range s.rng.Perm(len(kinds)) {
			half := (p.center(1-tail) - p.center(tail)) / 2
			if done >= leastBlocks && half <= s.Precision {
				return p, nil
			}
			err := s.block(ctx, kinds[k], p)
			p = fit(s.observations, lo, hi)
			if err != nil {
				return p, err
			}
			done++
		}
	}
}

// block runs one step at each level. A rising block begins far below the boundary, a falling one
// with an overload, so that effects of the service's past become visible.
func (s *search) block(ctx context.Context, kind string, p *posterior) error {
	var rates []float64
	for _, q := range levels {
		rates = append(rates, math.Exp(p.at(q)))
	}
	center, way := math.Exp(p.center(0.5)), 0.0
	switch kind {
	case Rising:
		way = 1
		far := min(max(math.Exp(p.at(0.95)), 0.7*center), 0.9*rates[0])
		rates = append([]float64{far}, rates...)
	case Falling:
		way = -1
		slices.Reverse(rates)
		far := max(min(math.Exp(p.at(0.05)), 1.3*center), 1.1*rates[0])
		rates = append([]float64{far}, rates...)
	default:
		s.rng.Shuffle(len(rates), func(i, j int) { rates[i], rates[j] = rates[j], rates[i] })
	}
	stretched := s.least
	defer func() { s.least = stretched }()
	for i, rate := range rates {
		s.least = stretched
		if way != 0 && i == 0 {
			s.least = 0 // far off, a short window is sufficient
		}
		if _, err := s.step(ctx, kind, max(rate, s.lowest()), way); err != nil {
			return err
		}
	}
	return nil
}

// conclude computes the results from the posterior.
func (s *search) conclude(p *posterior) {
	f := s.result
	tail := (1 - s.Confidence) / 2
	f.Found = true
	f.RatePerS, f.Width = math.Exp(p.center(0.5)), p.width()
	f.LoPerS, f.HiPerS = math.Exp(p.center(tail)), math.Exp(p.center(1-tail))
	f.ReliablePerS = math.Exp(p.at(lapseHigh + (1-lapseLow-lapseHigh)*0.95))
	if f.Width > wideWidth {
		f.warn("from %.0f to %.0f requests/s it is chance whether a step meets the objectives: "+
			"use longer windows",
			f.RatePerS*math.Exp(-2*f.Width), f.RatePerS*math.Exp(2*f.Width))
	}
	if steps := about(s.tried); memory(steps) > len(steps)/2 {
		f.warn("responses depend on earlier ones for so long that windows of %v are too short: "+
			"the long-run capacity may be lower; raise the budget",
			time.Duration(f.WindowNs).Round(100*time.Millisecond))
	}
	if s.invalid > 0 {
		f.warn("steps without a valid result: %d, which were repeated; the last reason: %s",
			s.invalid, s.last)
	}
	f.Hysteresis = s.hysteresis(p, tail)
	if h := f.Hysteresis; h.Differs {
		f.warn("hysteresis: the capacity is %.0f requests/s if the rate rises and %.0f "+
			"requests/s if it falls", h.BelowPerS,
			h.AbovePerS)
	}
}

// memory counts the steps whose responses are worth few independent ones, according to the verdict.
func memory(steps []Tried) (n int) {
	for _, t := range steps {
		if slices.Contains(t.named, "samples") {
			n++
		}
	}
	return n
}

func (s *search) hysteresis(p *posterior, tail float64) Hysteresis {
	ways := map[float64]int{}
	for _, o := range s.observations {
		ways[o.way]++
	}
	if ways[1] < len(levels) || ways[-1] < len(levels) {
		return Hysteresis{}
	}
	lo, mid, hi := p.shift(s.observations, tail)
	h := Hysteresis{
		Checked: true, Shift: math.Expm1(mid), Lo: math.Expm1(lo), Hi: math.Expm1(hi),
		BelowPerS: math.Exp(p.center(0.5) + mid/2), AbovePerS: math.Exp(p.center(0.5) - mid/2),
	}
	h.Differs = (lo > 0 || hi < 0) && math.Abs(mid) > shiftTold
	return h
}
