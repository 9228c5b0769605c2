package generator

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"prony.example/load"
	"prony.example/load/engine/nethttp"
	"prony.example/load/pace"
	"prony.example/record"
	"prony.example/stats"
)

// How a warm-up looks at itself.
const (
	WarmInterval = 100 * time.Millisecond
	WarmDrain    = 200 * time.Millisecond
)

// WarmRule is when a warm-up has done its work: its rate keeps one level for two seconds, where
// levels within 3 % are one, and the compilers of its runtime are silent, where they can be heard.
// Where they cannot, a pause between two stages of them may last longer than that tail; then the
// window shows it, see settle.
var WarmRule = stats.SteadyRule{Tail: 20, Same: 0.03}

// WarmUp offers a closed load before others, for most at the longest, and says what it came to:
// with steady it ends once the rate keeps one level, as a trial's warm-up does. Of the service's
// compilers it knows nothing. None of it is in any result.
func WarmUp(ctx context.Context, offer func(context.Context, load.Spec) (*load.Result, error),
	spec load.Spec, most time.Duration, steady bool) (w record.Warmup, err error) {
	var counts []int64
	spec.Name, spec.Lead, spec.Window, spec.Drain = "warmup", 0, most, WarmDrain
	spec.Model, spec.Users, spec.Schedule = record.Closed, nil, pace.Schedule{}
	spec.Requests, spec.Most, spec.Trace = 0, 0, load.Trace{}
	spec.Part = load.Part{} // this process hears soonest when it is warm
	spec.Live, spec.Every = nil, WarmInterval
	spec.Watch = func(done int64, elapsed time.Duration) bool {
		counts = append(counts, done)
		w.Requests, w.DurationNs = done, int64(elapsed)
		index := stats.SteadyState(Rates(counts), WarmRule).At
		if w.Steady = index >= 0; w.Steady {
			w.SteadyAtNs = int64(index) * int64(WarmInterval)
		}
		return !steady || !w.Steady
	}
	res, err := offer(ctx, spec)
	if err == nil && res.Done == 0 && w.Requests == 0 {
		err = fmt.Errorf("no good response within %v: %s", time.Duration(res.WindowNs),
			res.Errors.Why())
	}
	w.RatePerS, w.IntervalNs = Rates(counts), int64(WarmInterval)
	w.Connections = spec.Connections
	return w, err
}

// Rates turns a cumulative count per interval into requests a second.
func Rates(cumulative []int64) []float64 {
	var out []float64
	var before int64
	for _, n := range cumulative {
		out = append(out, float64(n-before)/WarmInterval.Seconds())
		before = n
	}
	return out
}

// nullTime is how long the null server is loaded for each number of connections.
const nullTime = time.Second

// Calibration makes a load one that finds the generator's ceiling, on the cores and connections
// that it has, against a null server at its address which is spoken to so; nil: in HTTP/1.1.
func Calibration(s load.Spec, speech *nethttp.Config) load.Spec {
	s.Model, s.Lead, s.Window = record.Closed, nullTime/5, nullTime
	s.Drain, s.Timeout = nullTime, nullTime
	r := load.Request{Method: http.MethodGet, Path: NullPath, WantSize: -1}
	if speech != nil &&
		slices.Contains([]string{nethttp.GRPC, nethttp.GRPCS, nethttp.WS, nethttp.WSS},
			speech.Protocol) {
		r.Method = http.MethodPost
	}
	s.Scenario = load.Scenario{Requests: []load.Request{r}}
	return s
}

// NullPath is what null servers are asked for: of the path, gRPC wants two parts.
const NullPath = "/null/Null"
