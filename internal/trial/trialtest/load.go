// Package trialtest simulates a load without a generator, a network or a service, for tests of the
// code around loads. It uses the time of a testing/synctest bubble and calls back as load.Run does.
//
// Non-goals: queues, errors and single requests; load itself is tested with truth/virtual.
package trialtest

import (
	"context"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/base/clock"
	"prony.example/load"
	"prony.example/record"
)

// ResponseNs is the response time of each response.
const ResponseNs = 1e6

// Load is a load whose responses come at a known rate.
type Load struct {
	Rate    float64                              // responses/s, unless the load requests less
	RateAt  func(elapsed time.Duration) float64  // Rate of a warm-up by its age; nil: Rate
	Connect time.Duration                        // how long connecting takes
	Result  func(load.Spec, float64) record.Load // nil: Good
}

// IsWarmUp reports whether a load is a trial's warm-up.
func IsWarmUp(s load.Spec) bool { return s.Name == "warmup" }

// Offer takes as long as the load would and returns its result. It reports the progress of warm-ups
// only. A warm-up returns when its window or its observer ends it, with only the number of
// responses.
func (l Load) Offer(ctx context.Context, s load.Spec) (*load.Result, error) {
	time.Sleep(l.Connect)
	start := clock.Mono()
	if s.Together != nil {
		var err error
		if start, err = s.Together(ctx); err != nil {
			return nil, err
		}
		time.Sleep(time.Duration(start - clock.Mono()))
	}
	if IsWarmUp(s) {
		return l.warm(ctx, s, start)
	}
	time.Sleep(s.Lead)
	observers := load.Observers{s.Observer}
	observers.Window(true)
	opened, wall := clock.Mono(), clock.Wall().UnixNano()
	select {
	case <-time.After(s.Window):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	observers.Window(false)
	result := l.Result
	if result == nil {
		result = Good
	}
	out := result(s, l.Rate)
	out.WindowOpenedUnixNs = wall
	return &load.Result{Load: out, FromNs: opened, OpenedNs: opened}, nil
}

// warm reports the number of responses until the warm-up is over.
func (l Load) warm(ctx context.Context, s load.Spec, start int64) (*load.Result, error) {
	done := 0.0
	for clock.Mono()-start < int64(s.Window) && ctx.Err() == nil {
		time.Sleep(s.Every)
		elapsed := time.Duration(clock.Mono() - start)
		rate := l.Rate
		if l.RateAt != nil {
			rate = l.RateAt(elapsed)
		}
		done += rate * s.Every.Seconds()
		now := load.Progress{Elapsed: elapsed, Totals: load.Totals{Done: int64(done)}}
		if !s.Observer.Progress(now) {
			break
		}
	}
	return &load.Result{Load: record.Load{Done: int64(done)}}, ctx.Err()
}

// Good returns a result without errors: all responses are good and take ResponseNs, at the rate of
// an open load's schedule, or at the given rate of a closed load.
func Good(s load.Spec, rate float64) record.Load {
	requested := 0.0
	if s.Model == record.Open {
		requested = s.Schedule.Rate.At(0)
		rate = requested
	}
	n := int64(s.Window.Seconds() * rate)
	d := Times(n, ResponseNs)
	return record.Load{
		Name: s.Name, Model: s.Model, Arrivals: s.Schedule.Arrivals, Connections: s.Connections,
		Threads: 1, RatePerS: requested, WindowNs: int64(s.Window),
		Scheduled: n, Sent: n, Done: n, Answered: n,
		ThroughputPerS: rate, InFlightMean: rate * ResponseNs / 1e9,
		ResponseTime: d, ServiceTime: d, FirstByte: d,
	}
}

// Answer sets the number of good responses of a load, and all that follows from it. Each took
// ResponseNs.
func Answer(l *record.Load, n int64) {
	l.Done, l.Answered = n, n
	l.ThroughputPerS = float64(n) / (float64(l.WindowNs) / 1e9)
	d := record.Dist{}
	if n > 0 {
		d = Times(n, ResponseNs)
	}
	l.ResponseTime, l.ServiceTime, l.FirstByte = d, d, d
}

// Times returns the distribution of n equal times, with its histogram.
func Times(n, ns int64) record.Dist {
	h := hdrhistogram.New(1, 1<<40, 3)
	if err := h.RecordValues(ns, n); err != nil {
		panic("trialtest: the times are out of range: " + err.Error())
	}
	hdr, err := h.EncodeV2()
	if err != nil {
		panic("trialtest: encode histogram: " + err.Error())
	}
	return record.Dist{Count: n, MinNs: ns, MeanNs: float64(ns), P50Ns: ns, P90Ns: ns, P99Ns: ns,
		P999Ns: ns, MaxNs: ns, HDR: string(hdr)}
}
