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

// Parameters of a warm-up.
const (
	WarmInterval = 100 * time.Millisecond
	WarmDrain    = 200 * time.Millisecond
)

// WarmRule defines the end of a warm-up: the rate keeps one level for two seconds (levels within 3
// % are equal), and the runtime's compilers are silent, if they can be observed. Otherwise a pause
// between two compiler stages may outlast these two seconds; the window then shows it, see settle.
var WarmRule = stats.SteadyRule{Tail: 20, Same: 0.03}

// WarmUp sends a closed load for at most a duration and returns its summary. With steady it ends
// when the rate keeps one level, as a trial's warm-up does, without regard to the service's
// compilers. Results do not include it.
func WarmUp(ctx context.Context, offer func(context.Context, load.Spec) (*load.Result, error),
	spec load.Spec, most time.Duration, steady bool) (w record.Warmup, err error) {
	var counts []int64
	spec.Name, spec.Lead, spec.Window, spec.Drain = "warmup", 0, most, WarmDrain
	spec.Model, spec.Users, spec.Schedule = record.Closed, nil, pace.Schedule{}
	spec.Requests, spec.Most, spec.Trace = 0, 0, load.Trace{}
	spec.Part = load.Part{} // a warm-up runs in one process, which reacts fastest
	spec.Every, spec.Detail = WarmInterval, load.Brief
	spec.Observer = load.ProgressFunc(func(p load.Progress) bool {
		counts = append(counts, p.Done)
		w.Requests, w.DurationNs = p.Done, int64(p.Elapsed)
		index := stats.SteadyState(Rates(counts), WarmRule).At
		if w.Steady = index >= 0; w.Steady {
			w.SteadyAtNs = int64(index) * int64(WarmInterval)
		}
		return !steady || !w.Steady
	})
	res, err := offer(ctx, spec)
	if err == nil && res.Done == 0 && w.Requests == 0 {
		err = fmt.Errorf("no good response within %v: %s", time.Duration(res.WindowNs),
			res.Errors.Why())
	}
	w.RatePerS, w.IntervalNs = Rates(counts), int64(WarmInterval)
	w.Connections = spec.Connections
	return w, err
}

// Rates converts a cumulative count per interval to requests per second.
func Rates(cumulative []int64) []float64 {
	var out []float64
	var before int64
	for _, n := range cumulative {
		out = append(out, float64(n-before)/WarmInterval.Seconds())
		before = n
	}
	return out
}

// nullTime is the duration of the load on the null server for each number of connections.
const nullTime = time.Second

// Calibration changes a load so that it finds the generator limit, with the load's cores and
// connections, against a null server at its address. speech is the null server's protocol; nil:
// HTTP/1.1.
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

// NullPath is the path of requests to null servers, with the two parts that gRPC needs.
const NullPath = "/null/Null"
