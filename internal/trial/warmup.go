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

// Settings of the warm-up.
const (
	// ownCores is the minimum time on a service's own cores before the first window, if it warmed
	// up on all cores: the tail of a steady state, and half that time again to reach it.
	ownCores = 3 * time.Second
	// favourEvery is the number of intervals between two searches for new compiler threads.
	favourEvery = 5
	// brief is how long the first new connections are kept before they are replaced once more: a
	// JVM recompiles for the first renewal, half as much for the second, and not for later ones.
	brief = 500 * time.Millisecond
)

// warming is a warm-up in progress.
type warming struct {
	*life
	counts []int64 // good responses so far, at the end of each interval
	heard  compilers
	wide   bool          // the service has all cores
	until  time.Duration // when wide ends, at the latest
	from   int           // index in counts: begin on its own cores and current connections
	opened int           // number of renewals of its connections
	reopen bool          // the connections are to be renewed now
	served int64         // good responses on earlier connections
	before time.Duration // time on earlier connections
	notify load.ProgressFunc
	err    error // why its cores or priorities could not be set
}

// warmUp offers the closed load until its rate is steady or the bound is reached, and records
// which.
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
	spec.Every, spec.Observer = generator.WarmInterval, load.ProgressFunc(g.look)
	g.favour(true)
	// Other generators report no responses before they end.
	res, err := f.offer(ctx, "", spec)
	for err == nil && g.reopen {
		g.renew()
		spec.Window = time.Duration(w.Max) - g.before
		res, err = f.offer(ctx, "", spec)
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

// warmth returns the warm-up settings of this trial.
func (f *life) warmth() suite.Warmup {
	return f.trial.Warmup.ByRuntime(f.trial.Subject.Target.Runtime, f.trial.Start != "")
}

// look receives the good responses so far and reports whether the warm-up goes on.
func (g *warming) look(p load.Progress) bool {
	w, r := g.warmth(), &g.rec.Warmup
	done, elapsed := p.Done+g.served, p.Elapsed+g.before
	if len(g.counts)%favourEvery == 0 { // some compiler threads start late
		g.favour(true)
		g.notify(load.Progress{Elapsed: elapsed, Totals: load.Totals{Done: done}})
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

// renew renews the connections, once the compilers are idle or two fifths of the time are over, and
// once more soon after: the windows open new connections, and JVMs discard code that was compiled
// when no connection had ended and compile it again when the first one ends.
func (g *warming) renew() {
	g.opened, g.reopen = g.opened+1, false
	g.served, g.before = g.rec.Warmup.Requests, time.Duration(g.rec.Warmup.DurationNs)
	g.from, g.heard = len(g.counts), compilers{}
	g.rec.Warmup.ReconnectedAtNs = int64(g.before)
}

// widen gives a service that compiles at run time all cores, if the suite requests it: on one core
// its compiler and the requests take turns. Other services gain nothing and may read a wrong number
// of cores, as Go does.
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

// narrow gives the service its own cores again. The record's limits are those that the kernel then
// reports.
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

// favour gives compilers priority over other threads, or ends the priority. Without priority, a
// compiler has the same share of the core as each of the threads that wait for its code, of which a
// service may have hundreds, and may not finish within minutes.
func (g *warming) favour(enabled bool) {
	if g.warmth().Compilers != "" || g.err != nil || !enabled &&
		g.rec.Warmup.PrioritizedThreads == 0 {
		return
	}
	var threads int
	threads, g.err = g.proc.Favour(enabled)
	g.rec.Warmup.PrioritizedThreads = max(g.rec.Warmup.PrioritizedThreads, threads)
}

// warm reports and records whether the service is steady on its own cores, by its rate and its
// compilers: a plateau between two stages of compilation is no steady state.
func (g *warming) warm() bool {
	r := &g.rec.Warmup
	s := stats.SteadyState(generator.Rates(g.counts)[g.from:], generator.WarmRule)
	if s.At < 0 || r.CompilersIdleAtNs < 0 {
		return false
	}
	r.Steady, r.SteadyAtNs = true, int64(g.from+s.At)*int64(generator.WarmInterval)
	return true
}

// level reports whether the rate is steady on the cores that the service has.
func (g *warming) level() bool {
	return stats.SteadyState(generator.Rates(g.counts), generator.WarmRule).At >= 0
}

// compilers records what a runtime's compilers have done at the end of each interval of a warm-up.
type compilers struct {
	observed []heard
	from     int // index in observed: the last one that is SilentFor old
	atNs     int64
}

type heard struct {
	probe.Roles
	ns int64
}

// hear returns since when the compilers are idle, as record.Warmup stores it.
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
		c.atNs = max(a.ns, 1) // 0 would mean unknown
	}
	return c.atNs
}

// settle decides on the steady state of a measured trial by its warm-up and its first closed
// window, taken as one series: the warm-up alone decides when it ends, and the window shows whether
// that was right. A steady state must last at least half of the window. SteadyAtNs may then lie in
// the window, counted in time under load.
func settle(rec *record.Record) {
	w := &rec.Warmup
	series, step, scale, origin := []float64(w.RatePerS), w.IntervalNs, 1, w.CoresReducedAtNs
	if origin > 0 { // the rates on other cores are not part of the series
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

// leastTail is the minimum number of values that make a level, however long each is.
const leastTail = 4

// continued returns the first load if it is like the warm-up's, otherwise nil.
func continued(rec *record.Record) *record.Load {
	if len(rec.Loads) == 0 {
		return nil
	}
	l := &rec.Loads[0]
	plain := l.Model == record.Closed && l.Users == "" && l.Driver == "" && l.Churn == 0 &&
		l.Network == nil && l.Connections == rec.Warmup.Connections
	if !plain || l.Series.IntervalNs == 0 {
		return nil
	}
	return l
}

// merged averages groups of consecutive intervals. It leaves out the remainder at the beginning,
// which belongs to the warm-up in any case.
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

// windowRates returns the rates of the window's complete intervals.
func windowRates(l *record.Load) (out []float64) {
	total := min(len(l.Series.Done), int(l.WindowNs/l.Series.IntervalNs))
	for _, n := range l.Series.Done[:total] {
		out = append(out, float64(n)/(float64(l.Series.IntervalNs)/1e9))
	}
	return out
}
