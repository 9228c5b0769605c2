package selftest_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/generator/selftest"
	"prony.example/internal/generator/truth"
	"prony.example/internal/generator/truth/virtual"
	"prony.example/load"
	"prony.example/record"
)

// wire is the transmission time of a request or response: about the time on a virtual machine.
const wire = 100 * time.Microsecond

// world is a truth server and the real generator in virtual time.
type world struct {
	t        *testing.T
	plan     truth.Plan
	requests int64
	freeAt   int64 // time at which the server's thread is free again
	burnt    time.Duration
	cpu      float64 // ratio of the reported to the burnt CPU time
	late     float64 // reported delay of the server's responses, ns
	waits    int64   // reported wait for a core, ns per request
	stopped  int
	times    []truth.Times

	clock   float64                       // speed of the generator's clock; 0: correct
	forgets func(*record.Load)            // removes what the generator does not report
	drops   func(*truth.Reply)            // changes a single response
	wrap    func(load.Engine) load.Engine // disturbs the engine as a machine does
	machine func() selftest.Machine       // returns the record of the machine
}

// setup returns a selftest's Setup for the world.
func (w *world) setup(report func(string)) selftest.Setup {
	s := selftest.Setup{Offer: w.offer, Start: w.start, Report: report}
	if w.machine != nil {
		s.Watch = func() func() selftest.Machine { return w.machine }
	}
	return s
}

func (w *world) start(_ context.Context, kind string, p truth.Params, o truth.Options,
) (selftest.Server, error) {
	k, ok := truth.Find(kind)
	if !ok {
		return nil, fmt.Errorf("there is no kind %q", kind)
	}
	plan, err := k.Plan(p)
	w.plan, w.requests, w.freeAt, w.burnt, w.times = plan, 0, math.MinInt64, 0, nil
	return w, err
}

func (w *world) Addr() netip.AddrPort { return netip.MustParseAddrPort("127.0.0.1:80") }

func (w *world) CPU() (time.Duration, error) {
	const before = 300 * time.Millisecond // CPU time before it listened
	return before + time.Duration(w.cpu*float64(w.burnt)), nil
}

func (w *world) Stop() (truth.Report, error) {
	w.stopped++
	return truth.Report{Requests: w.requests, LateMeanNs: w.late, Delayed: w.requests,
		RunDelayNs: w.waits * w.requests, Times: w.times, Ahead: true}, nil
}

// serve is the server's plan behind the wire.
func (w *world) serve(now int64, r truth.Request) truth.Reply {
	w.requests++
	came := max(now+int64(wire), w.freeAt)
	out := w.plan(came, r)
	times := truth.Times{CameNs: came, ProcessorNs: int64(out.Burn)}
	if out.Burn > 0 {
		w.burnt += out.Burn
		out.At += int64(out.Burn)
		w.freeAt, out.Burn = out.At, 0
	}
	if out.At != truth.Never {
		times.LeftNs, times.ServiceNs = out.At, out.At-came
		out.At += int64(wire)
	}
	w.times = append(w.times, times)
	if w.drops != nil {
		w.drops(&out)
	}
	return out
}

// Responses of truth servers.
var (
	sound   = truth.Answer("200 OK", "", truth.Body)
	isError = []byte("HTTP/1.1 5")
)

// overlooks makes the generator accept a bad response.
func overlooks(bad func(text []byte) bool) func(*truth.Reply) {
	return func(r *truth.Reply) {
		if len(r.Text) > 0 && bad(r.Text) {
			r.Text = sound
		}
	}
}

func isRefusal(text []byte) bool { return bytes.HasPrefix(text, isError) }

func isWrongBody(text []byte) bool {
	return len(text) == len(sound) && !bytes.Equal(text, sound) && !isRefusal(text)
}

// honest holds each case's result without dropped responses: it runs once, because most faults are
// applied afterwards.
var honest = map[string]offered{}

type offered struct {
	result   load.Result
	requests int64
	burnt    time.Duration
	times    []truth.Times
}

// offer is a selftest.Offer.
func (w *world) offer(_ context.Context, s load.Spec) (*load.Result, error) {
	s.Ahead = false // the bubble's threads have no priority
	x, ok := honest[s.Name]
	if !ok || w.drops != nil || w.wrap != nil {
		net := virtual.Serve(w.serve)
		net.Wrap = w.wrap
		res, err := net.Run(w.t, s)
		if err != nil {
			return nil, err
		}
		x = offered{*res, w.requests, w.burnt, w.times}
		if w.drops == nil && w.wrap == nil {
			honest[s.Name] = x
		}
	}
	w.requests, w.burnt, w.times = x.requests, x.burnt, x.times
	out := x.result
	out.Series.P50Ns = slices.Clone(out.Series.P50Ns)
	if w.forgets != nil {
		w.forgets(&out.Load)
	}
	if w.clock != 0 {
		measuredBy(w.clock, &out)
	}
	return &out, nil
}

func dist(ns []int64) record.Dist {
	if len(ns) == 0 {
		return record.Dist{}
	}
	h := hdrhistogram.New(1, 1<<40, 3)
	for _, x := range ns {
		if err := h.RecordValue(max(x, 1)); err != nil {
			panic(err)
		}
	}
	b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		panic(err)
	}
	return record.Dist{
		Count: int64(len(ns)), MinNs: slices.Min(ns), MaxNs: h.Max(), MeanNs: h.Mean(),
		P50Ns: h.ValueAtQuantile(50), P90Ns: h.ValueAtQuantile(90),
		P99Ns: h.ValueAtQuantile(99), P999Ns: h.ValueAtQuantile(99.9), HDR: string(b),
	}
}

// measuredBy changes all durations of a load as if a clock with the wrong speed had measured them.
func measuredBy(speed float64, r *load.Result) {
	l := &r.Load
	for _, d := range []*record.Dist{&l.ResponseTime, &l.ServiceTime, &l.FirstByte, &l.Lag} {
		scaled(d, speed)
	}
	for i := range l.Series.P50Ns {
		l.Series.P50Ns[i] = int64(speed * float64(l.Series.P50Ns[i]))
	}
	r.Sample.Response = slices.Clone(r.Sample.Response)
	for i := range r.Sample.Response {
		r.Sample.Response[i] = int64(speed * float64(r.Sample.Response[i]))
	}
}

// scaled stretches a distribution, as a generator with a wrong clock would.
func scaled(d *record.Dist, by float64) {
	h, err := hdrhistogram.Decode([]byte(d.HDR))
	if err != nil {
		*d = record.Dist{}
		return
	}
	var ns []int64
	for _, bar := range h.Distribution() {
		for range bar.Count {
			ns = append(ns, int64(math.Round(by*float64(bar.From+bar.To)/2)))
		}
	}
	*d = dist(ns)
}
