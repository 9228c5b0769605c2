package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"prony.example/internal/base/runtimes"
	"prony.example/internal/generator"
	"prony.example/internal/observe/probe"
	"prony.example/internal/suite"
	"prony.example/load"
	"prony.example/record"
	"prony.example/stats"
)

// How the warm-up looks at itself.
const (
	// ownCores is the least time that a service has on its own cores before the first window, where
	// it warmed up on all of them: the tail of a steady state, and half as long to get there.
	ownCores = 3 * time.Second
	// favourEvery is after how many intervals it is looked for compilers that are new.
	favourEvery = 5
	// brief is for how long connections are kept that were opened anew, before others are: a JVM
	// compiles anew for the first and half as much for the second, for later ones nothing.
	brief = 500 * time.Millisecond
)

// warming is a warm-up under way.
type warming struct {
	*life
	counts []int64 // good answers so far, at the end of each interval
	heard  compilers
	wide   bool          // it has all cores
	until  time.Duration // and no longer
	from   int           // of counts: since it has its own, on the connections that it has now
	opened int           // how often its connections were
	reopen bool          // they are, now
	served int64         // on those before
	before time.Duration // likewise
	notify func(load.Glance)
	err    error // why it could not be given them
}

// warmUp offers the closed load until its rate is steady or the bound is hit, and notes which.
func (f *life) warmUp(ctx context.Context) error {
	w := f.warmth()
	f.at("warmup", time.Duration(w.Max))
	f.count(ctx)
	f.rec.Warmup.IntervalNs, f.rec.Warmup.Connections = int64(generator.WarmInterval), w.Connections
	g := &warming{life: f, notify: f.pulse("warmup")}
	if err := g.widen(); err != nil {
		return err
	}
	spec := f.spec("warmup", record.Closed, w.Connections)
	spec.Window, spec.Drain = time.Duration(w.Max), generator.WarmDrain
	spec.Every, spec.Watch = generator.WarmInterval, g.look
	g.favour(true)
	res, err := f.offer(ctx, spec)
	for err == nil && g.reopen {
		g.anew()
		spec.Window = time.Duration(w.Max) - g.before
		res, err = f.offer(ctx, spec)
	}
	if err == nil {
		g.narrow()
		g.favour(false)
		err = g.err
	}
	if err != nil {
		return err
	}
	f.rec.Warmup.RatePerS = generator.Rates(g.counts)
	g.warm() // at the bound, which may be as early as the minimum
	if f.rec.Warmup.Requests == 0 && res.Done == 0 {
		return fmt.Errorf("warm up %s: no good response within %v: %s", f.trial.Target,
			time.Duration(w.Max), res.Errors.Why())
	}
	return nil
}

// warmth is the warm-up of this trial.
func (f *life) warmth() suite.Warmup {
	w := f.trial.Warmup
	if f.trial.Start != "" {
		w = w.InStart(f.trial.Subject.Target.Runtime)
	}
	return w
}

// look is told the good answers so far, and says whether to go on.
func (g *warming) look(done int64, elapsed time.Duration) bool {
	w, r := g.warmth(), &g.rec.Warmup
	done, elapsed = done+g.served, elapsed+g.before
	if len(g.counts)%favourEvery == 0 { // some are born late
		g.favour(true)
		g.notify(load.Glance{Elapsed: elapsed, Done: done})
	}
	g.counts = append(g.counts, done)
	r.Requests, r.DurationNs = done, int64(elapsed)
	r.CompilersIdleAtNs = g.heard.hear(g.watch.Roles(), int64(elapsed))
	if g.wide && (elapsed >= g.until || r.CompilersIdleAtNs > 0 || r.CompilersIdleAtNs == 0 &&
		g.level()) {
		g.narrow()
	}
	most := time.Duration(w.Max)
	if !g.wide && w.Compilers == "" && elapsed < most &&
		(g.opened == 1 && elapsed >= g.before+brief ||
			g.opened == 0 && (r.CompilersIdleAtNs > 0 || r.CompilersIdleAtNs < 0 &&
				elapsed >= most*2/5)) {
		g.reopen = true
		return false
	}
	return g.err == nil && (elapsed < time.Duration(w.Min) || g.wide || !g.warm())
}

// anew begins again with new connections, once compilers are silent or two fifths of the time are
// over, and soon once more: the windows open theirs, and code that was compiled when connections
// only ever answered is thrown away and compiled again when the first of them ends.
func (g *warming) anew() {
	g.opened, g.reopen = g.opened+1, false
	g.served, g.before = g.rec.Warmup.Requests, time.Duration(g.rec.Warmup.DurationNs)
	g.from, g.heard = len(g.counts), compilers{}
	g.rec.Warmup.ReconnectedAtNs = int64(g.before)
}

// widen gives a service that compiles all cores, where the suite wants it: on one core a compiler
// and the requests that it compiles for take turns. Others have nothing to gain, and may count
// their cores, as Go does, and find too many.
func (g *warming) widen() error {
	all := g.lab.Layout.Cores()
	if g.warmth().Cores != suite.AllCores ||
		!runtimes.Of(g.trial.Subject.Target.Runtime).Compiles ||
		slices.Equal(all, g.lab.Layout.Service) {
		return nil
	}
	if err := g.proc.Move(all); err != nil {
		return err
	}
	g.rec.Warmup.Cores = all
	g.rec.Warmup.InForce, _ = g.proc.Limits()
	most := time.Duration(g.warmth().Max)
	g.wide, g.until = true, most-min(most/2, ownCores)
	return nil
}

// narrow gives the service its own cores again. What the kernel then says to be in force is what
// the record has of its limits.
func (g *warming) narrow() {
	if !g.wide {
		return
	}
	g.wide, g.from = false, len(g.counts)
	g.rec.Warmup.CoresReducedAtNs = int64(g.from) * int64(generator.WarmInterval)
	g.err = g.proc.Move(g.lab.Layout.Service)
	g.rec.Limits.InForce, g.rec.Limits.Missing = g.proc.Limits()
	if g.err != nil {
		g.err = errors.Join(errors.New("end the warm-up that used all cores"), g.err)
	}
}

// favour lets compilers go before other threads, or not any longer: where they take turns, a
// compiler has a share of the core like each of the threads that wait for its code, of which a
// service may have hundreds, and is not done after minutes.
func (g *warming) favour(enabled bool) {
	if g.warmth().Compilers != "" || g.err != nil || !enabled &&
		g.rec.Warmup.PrioritizedThreads == 0 {
		return
	}
	var threads int
	threads, g.err = g.proc.Favour(enabled)
	g.rec.Warmup.PrioritizedThreads = max(g.rec.Warmup.PrioritizedThreads, threads)
}

// warm notes whether the service is, on its own cores, by the rate and by its compilers: a plateau
// between two stages of them is no steady state.
func (g *warming) warm() bool {
	r := &g.rec.Warmup
	s := stats.SteadyState(generator.Rates(g.counts)[g.from:], generator.WarmRule)
	if s.At < 0 || r.CompilersIdleAtNs < 0 {
		return false
	}
	r.Steady, r.SteadyAtNs = true, int64(g.from+s.At)*int64(generator.WarmInterval)
	return true
}

// level says whether the rate is steady on the cores that the service has.
func (g *warming) level() bool {
	return stats.SteadyState(generator.Rates(g.counts), generator.WarmRule).At >= 0
}

// compilers are what a runtime's compilers have done, at the end of each interval of a warm-up.
type compilers struct {
	observed []heard
	from     int // of seen: the last one that is SilentFor old
	atNs     int64
}

type heard struct {
	probe.Roles
	ns int64
}

// hear says from when on they have been silent, as record.Warmup has it.
func (c *compilers) hear(r probe.Roles, ns int64) (silentAtNs int64) {
	if r.CompilerNs == 0 {
		return 0
	}
	c.observed = append(c.observed, heard{r, ns})
	for c.from+1 < len(c.observed) && ns-c.observed[c.from+1].ns >= int64(runtimes.SilentFor) {
		c.from++
	}
	a := c.observed[c.from]
	over := ns - a.ns
	if over < int64(runtimes.SilentFor) || !runtimes.Silent(r.CompilerNs-a.CompilerNs,
		r.CompilerWaitNs-a.CompilerWaitNs, over) {
		c.atNs = -1
	} else if c.atNs <= 0 {
		c.atNs = max(a.ns, 1) // 0 would say that nobody knows
	}
	return c.atNs
}

// settle says of a trial that was measured what its warm-up and its first closed window, one series
// in one state of the service, say of its steady state together: the warm-up alone decides when it
// ends, and the window shows whether it was right. A steady state must hold for at least half of
// the window. SteadyAtNs may then lie in the window, in time of load.
func settle(rec *record.Record) {
	w := &rec.Warmup
	series, step, scale, origin := []float64(w.RatePerS), w.IntervalNs, 1, w.CoresReducedAtNs
	if origin > 0 { // what it did on other cores is no part of the series
		series = series[origin/step:]
	}
	rule := generator.WarmRule
	if l := continued(rec); l != nil && l.Series.IntervalNs%w.IntervalNs == 0 {
		scale = int(l.Series.IntervalNs / w.IntervalNs)
		step = l.Series.IntervalNs
		origin += int64(len(series)%scale) * w.IntervalNs
		window := windowRates(l)
		series = append(merged(series, scale), window...)
		rule.Tail = max(generator.WarmRule.Tail/scale, len(window)/2, leastTail)
	}
	s := stats.SteadyState(series, rule)
	w.Kind, w.Levels = s.Kind, nil
	for _, level := range s.Levels {
		w.Levels = append(w.Levels, record.Level{
			FromNs: origin + int64(level.From)*step, ToNs: origin + int64(level.To)*step,
			MeanPerS: level.Mean,
		})
	}
	w.SteadyAtNs, w.PeakAtNs, w.CostNs = 0, 0, 0
	if s.At > 0 || s.At == 0 && w.CoresReducedAtNs > 0 {
		w.SteadyAtNs = origin + int64(s.At)*step
	}
	if s.At >= 0 && w.CoresReducedAtNs == 0 {
		w.PeakAtNs, w.CostNs = origin+int64(s.PeakAt)*step, int64(s.Lost*float64(step))
	}
}

// leastTail is of values that make a level, however long each is.
const leastTail = 4

// continued is the first load, where it goes on as the warm-up did.
func continued(rec *record.Record) *record.Load {
	if len(rec.Loads) == 0 {
		return nil
	}
	l := &rec.Loads[0]
	plain := l.Model == record.Closed && l.Users == "" && l.Driver == "" && l.Churn == 0 &&
		l.Connections == rec.Warmup.Connections
	if !plain || l.Series.IntervalNs == 0 {
		return nil
	}
	return l
}

// merged takes several intervals as one; what is left over at the beginning, where everything is
// warm-up in any case, is left out.
func merged(rates []float64, several int) []float64 {
	var out []float64
	for pos := len(rates) % several; pos < len(rates); pos += several {
		sum := 0.0
		for _, r := range rates[pos : pos+several] {
			sum += r
		}
		out = append(out, sum/float64(several))
	}
	return out
}

// windowRates are the window's whole intervals.
func windowRates(l *record.Load) (out []float64) {
	total := min(len(l.Series.Done), int(l.WindowNs/l.Series.IntervalNs))
	for _, n := range l.Series.Done[:total] {
		out = append(out, float64(n)/(float64(l.Series.IntervalNs)/1e9))
	}
	return out
}
