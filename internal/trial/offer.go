package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/generator"
	"prony.example/internal/observe/probe"
	"prony.example/internal/observe/stallfree"
	"prony.example/internal/suite"
	"prony.example/internal/telemetry"
	"prony.example/load"
	"prony.example/load/arrivalcheck"
	"prony.example/load/pace"
	"prony.example/load/template"
	"prony.example/record"
)

// pulseEvery is the time between two reports on a load: short enough for a reader, and too long to
// affect a result.
const pulseEvery = 500 * time.Millisecond

// measure offers the suite's loads one after another.
func (f *life) measure(ctx context.Context) error {
	for _, l := range f.trial.Loads {
		if err := f.measureOne(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

func (f *life) measureOne(ctx context.Context, l suite.Load) error {
	if f.beforeLoad != nil {
		if err := f.beforeLoad(l.Length()); err != nil {
			return err
		}
	}
	f.lab.tell(Event{Trial: f.trial.ID, Step: l.Name, Expect: l.Length()})
	if l.Model == record.Capacity {
		return f.search(ctx, l)
	}
	spec := f.specOf(l)
	rateOf, rateBase := "", ""
	if l.Model == record.Open {
		ofPerS, err := f.delivered(l.Rate.Of)
		if err != nil {
			return fmt.Errorf("run load %s: %w", l.Name, err)
		}
		spec.Schedule = l.Schedule(ofPerS)
		if l.Rate.Of != "" {
			rateOf, rateBase = l.Rate.String(), l.Rate.Of
		}
	}
	o, err := f.calmWindow(ctx, l, spec)
	if err != nil {
		return err
	}
	o.load.RateOf, o.load.RateBase = rateOf, rateBase
	f.keep(o)
	return nil
}

// A window of up to longestAgain in which the machine stalled for too long is repeated up to
// mostAgain times.
const (
	longestAgain = 10 * time.Second
	mostAgain    = 2
)

// calmWindow offers a load in a window and computes its values without stalls. It repeats a window
// of an open load if the machine stalled for too long in it: too few arrivals would remain. Only
// the machine decides this, so it does not prefer any response times.
func (f *life) calmWindow(ctx context.Context, l suite.Load, spec load.Spec) (*offered, error) {
	watcher := f.stallWatcher(&spec)
	defer watcher.Close()
	most := mostAgain
	if spec.Model != record.Open || time.Duration(l.Measure) > longestAgain || f.lab.Meter != nil ||
		len(f.trial.Watched.Profile) > 0 { // telemetry and profiles would have both windows
		most = 0
	}
	for disturbed := 0; ; disturbed++ {
		spec.Observer = f.pulse(l.Name)
		log := f.logWindow(watcher, &spec)
		stop := f.profile(ctx, l.Name)
		o, err := f.window(ctx, spec, f.markAt)
		stop()
		if err != nil {
			return nil, err
		}
		log.keep(o)
		if disturbed == most || log.Share(log.Spans()) <= stallfree.StallLimit {
			o.load.Disturbed = disturbed
			return o, nil
		}
		if f.beforeLoad != nil {
			if err := f.beforeLoad(l.Length()); err != nil {
				return nil, err
			}
		}
		f.lab.tell(Event{Trial: f.trial.ID, Step: l.Name, Expect: l.Length()})
	}
}

// specOf returns the specification of a suite's load, without its schedule.
func (f *life) specOf(l suite.Load) load.Spec {
	spec := f.spec(l.Name, l.Model, l.Connections)
	spec.Lead, spec.Window = time.Duration(l.Lead), time.Duration(l.Measure)
	spec.Drain = time.Duration(l.Drain)
	model(&spec, l)
	spec.Part = load.Part{Of: l.Generators}
	spec.Trace = load.Trace{Share: float64(f.trial.Watched.Traces), Salt: f.salt()}
	return spec
}

// offered is a load that was offered, with the probe's readings around its window.
type offered struct {
	load          record.Load
	intervals     []load.Interval
	before, after probe.Mark
	openedWall    int64 // Unix times in ns of the marks at the window's opening and close
	closedWall    int64
	lengthNs      int64
	pos           int // index in the record's loads
	sample        arrivalcheck.Times
	fromNs        int64 // beginning of the window, from which the sample's times count
}

// window offers a load. It calls mark when the load's window opens and closes.
func (f *life) window(ctx context.Context, spec load.Spec,
	mark func(kind, name string, wallNs int64),
) (*offered, error) {
	o := &offered{}
	var requested []reading
	// The wall clock gives dates only, because it may step in the window. Lengths come from the
	// monotonic clocks.
	var from, openedMono, closedMono int64
	var idle []record.IdleTarget
	f.idle.refresh()
	spec.Observer = load.Observers{spec.Observer, load.WindowFunc(func(open bool) {
		if open {
			o.before = f.watch.Mark()
			f.idle.open()
			from, openedMono = clock.KernelNow(), clock.Mono()
			o.openedWall = clock.Wall().UnixNano()
			requested = f.readings(ctx)
			mark(telemetry.Open, spec.Name, o.openedWall)
		} else {
			closedMono, o.closedWall = clock.Mono(), clock.Wall().UnixNano()
			mark(telemetry.Close, spec.Name, o.closedWall)
			o.after = f.watch.MarkPSS() // before the counters are read: the load is over
			idle = f.idle.used()        // lists processes, which takes milliseconds
			requested = append(requested, f.readings(ctx)...)
		}
	})}
	spec.Ahead = !f.lab.Layout.Shared
	res, err := f.offer(ctx, f.rec.Target.Driver, spec)
	if err != nil {
		return nil, err
	}
	if res.FromNs != 0 && from != 0 {
		from += res.FromNs - openedMono
	}
	o.load, o.intervals, o.lengthNs = res.Load, res.Intervals, closedMono-openedMono
	o.sample, o.fromNs = res.Sample, res.FromNs
	o.load.WindowOpenedMonotonicNs, o.load.IdleTargets = from, idle
	if o.load.Model == record.Closed {
		o.load.CeilingPerS = f.lab.ceiling(o.load.Protocol, o.load.Streams,
			o.load.Connections, len(o.load.Generators))
	}
	f.use(&o.load, o.before, o.after)
	o.load.BackendCalls = f.asks(&o.load, requested, res.FromNs)
	return o, nil
}

// keep adds a load to the record.
func (f *life) keep(o *offered) {
	l := o.load
	f.rec.Loads, f.betweenNs = append(f.rec.Loads, l), append(f.betweenNs, o.lengthNs)
	f.details = append(f.details, detail{name: l.Name, intervals: o.intervals},
		detail{name: l.Name, value: f.samples(l.Name, o.before, o.after)})
	o.pos = len(f.rec.Loads) - 1
	f.remember(o)
}

// samples returns the part of the trial's series between two marks.
func (f *life) samples(load string, before, after probe.Mark) record.Samples {
	out := record.Samples{Trial: f.trial.ID, Load: load}
	s := f.watch.Series()
	for i, t := range s.TNs {
		if t > before.TNs && t <= after.TNs {
			out.TimeNs = append(out.TimeNs, t-before.TNs)
			out.CPUCores = append(out.CPUCores, s.CPUCores[i])
			out.RSSBytes = append(out.RSSBytes, s.RSSBytes[i])
			out.Threads = append(out.Threads, s.Threads[i])
		}
	}
	return out
}

// use adds the service's resource usage to a load, unless a process has left the groups that are
// read. The two marks lie slightly outside the window, under the same load, so the number of
// requests between them is scaled up in proportion.
func (f *life) use(out *record.Load, before, after probe.Mark) {
	requests := out.Done + out.Errors.Total()
	between := after.TNs - before.TNs
	requests = int64(float64(requests) * float64(between) / float64(out.WindowNs))
	out.Service, out.Host = probe.Between(before, after, f.watch.Series(), requests,
		f.rec.Limits.CPUs)
	inForce, missing := f.proc.Limits()
	if record.HasStrayed(missing) {
		out.Service = record.Usage{}
		f.rec.Limits.InForce, f.rec.Limits.Missing = inForce, missing
	}
}

// delivered returns the rate of good responses to an earlier load of this trial, or in the pilot of
// its target. The rates of other loads are shares of it.
func (f *life) delivered(load string) (perS float64, err error) {
	if load == "" {
		return 0, nil
	}
	for i := range f.rec.Loads {
		if l := &f.rec.Loads[i]; l.Name == load {
			if l.ThroughputPerS <= 0 {
				err := fmt.Errorf("the rate is a share of load %s, which had no good response "+
					"in %v: %s", load, time.Duration(l.WindowNs), l.Errors.Why())
				if l.Errors.Body > 0 {
					err = hinted("if responses may change in time, check less of them: use "+
						"--ignore-body, or checks or expect of a request in prony.yaml", "%w", err)
				}
				return 0, err
			}
			return l.ThroughputPerS, nil
		}
	}
	if load == suite.CapacityLoad {
		if perS := f.pilots[pilotOf(f.trial)]; perS > 0 {
			return perS, nil
		}
		return 0, errors.New("the rate is a share of the capacity of the target without " +
			"variants, but the calibration run that measures it failed or is INVALID")
	}
	return 0, fmt.Errorf("the rate is a share of load %s, which did not run", load)
}

// offer runs a load with a generator, Prony's own if the name is empty, and ends it when the
// service ends.
func (f *life) offer(ctx context.Context, name string, s load.Spec) (*load.Result, error) {
	if name != "" {
		// The defaults are no requirement: other generators pace in their own way, and report
		// nothing before they end.
		s.Pacing, s.Every = "", 0
	}
	spread(&s, f.speech)
	driver, err := f.lab.Driver(name, s.Describe.Name, f.speech)
	if err != nil {
		return nil, err
	}
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-f.proc.Exited():
			cancel()
		case <-bounded.Done():
		}
	}()
	res, err := driver.Offer(bounded, s)
	if err != nil {
		return nil, f.orExit(err)
	}
	return res, f.orExit(nil)
}

func (f *life) spec(name, model string, connections int) load.Spec {
	return load.Spec{
		Name: name, Address: f.addr, Model: model, Connections: connections, Seed: f.trial.Seed,
		Timeout: f.trial.Timeout, Cores: f.lab.Layout.Load,
		Scenario: f.scene, Observer: f.pulse(name), Every: pulseEvery,
	}
}

// pulse returns an observer that reports how a load goes.
func (f *life) pulse(name string) load.ProgressFunc {
	var before load.Progress
	return func(now load.Progress) bool {
		p := &Pulse{Failed: now.Failed - before.Failed}
		if passed := (now.Elapsed - before.Elapsed).Seconds(); passed > 0 {
			p.PerS = float64(now.Done-before.Done) / passed
		}
		if now.Answers > 0 {
			p.P50Ns, p.P99Ns = now.Response.ValueAtQuantile(50), now.Response.ValueAtQuantile(99)
		}
		before = now
		f.lab.tell(Event{Trial: f.trial.ID, Step: name, Pulse: p})
		return true
	}
}

func (f *life) scenario() load.Scenario {
	s, err := generator.Scenario(f.trial.Scene, f.trial.Subject.Target.Mode)
	if err != nil {
		panic("trial: a scenario of a checked suite is invalid: " + err.Error())
	}
	return s
}

// firstAnswer sends the scenario's first request alone and records the time from exec to the
// complete response: the wait of a user whose request scales a service up from zero.
func (f *life) firstAnswer(ctx context.Context) error {
	req, err := f.firstRequest(ctx)
	if err != nil {
		return fmt.Errorf("send the first request to %s: %w", f.trial.Target, err)
	}
	res, err := transport(f.speech, f.lab.Dial).RoundTrip(req)
	if err != nil {
		return fmt.Errorf("send the first request to %s: %w", f.trial.Target, err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return fmt.Errorf("read the first response of %s: %w", f.trial.Target, err)
	}
	f.rec.Start.FirstResponseNs = clock.Mono() - f.proc.Began()
	return nil
}

// firstRequest returns the first request of the load, with the first key.
func (f *life) firstRequest(ctx context.Context) (*http.Request, error) {
	s := f.scene
	r := slices.Concat(s.Setup, s.Requests)[0] // the first one uses no value from earlier responses
	v := &template.Values{Seed: f.trial.Seed, Key: f.trial.Scene.Keys[0]}
	if len(s.Rows) > 0 {
		v.Vars = s.Rows[0]
	}
	var failed error
	render := func(t string) string {
		out, err := template.Render(t, s.Columns, v, os.LookupEnv)
		failed = cmp.Or(failed, err)
		return out
	}
	url, body := "http://"+f.addr.String()+render(r.Path), render(r.Body)
	req, err := http.NewRequestWithContext(ctx, r.Method, url, strings.NewReader(body))
	if err = cmp.Or(failed, err); err != nil {
		return nil, err
	}
	if r.Type != "" {
		req.Header.Set("Content-Type", r.Type)
	}
	for _, h := range r.Headers {
		value := render(h.Value)
		req.Header.Set(h.Name, value)
		if strings.EqualFold(h.Name, "host") {
			req.Host = value // net/http reads the host only from here
		}
	}
	return req, failed
}

// model sets how the suite offers a load, without the rate. The engine is a preference that the
// driver may not be able to meet.
func model(spec *load.Spec, l suite.Load) {
	spec.Churn, spec.Pacing, spec.Describe.Name = l.Churn, l.Pacing, l.Engine
	spec.Network = l.Network.Delay
	spec.Pacing = cmp.Or(spec.Pacing, load.Precise) // the load has its own cores
	if spec.Model == record.Open {
		spec.Most = l.Most
	}
	if l.Users.IsZero() && l.Think == (suite.Think{}) {
		return
	}
	spec.Users = &load.Users{Number: pace.Flat(float64(l.Connections)), Think: load.Think{
		Kind: l.Think.Kind, Lo: time.Duration(l.Think.Lo), Hi: time.Duration(l.Think.Hi),
	}}
	if !l.Users.IsZero() {
		spec.Users.Number = l.Users.Profile
	}
}
