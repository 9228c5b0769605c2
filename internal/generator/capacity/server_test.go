package capacity

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/record"
	"prony.example/record/slo"
)

// server is an M/M/1 queue by its formulas: response time is exponential with a mean of 1/(mu -
// lambda), so that p99 is ln(100)/(mu - lambda), and p99 < d holds below mu - ln(100)/d. A window
// shows this value times a log-normal error with the median 1, so half of the steps hold at the
// capacity.
type server struct {
	perS  float64 // mu
	noise float64 // standard deviation of the error's logarithm
	rng   *rand.Rand
	nowNs int64
	steps []Step

	sticky   float64 // share of mu that an overload takes away, until a step far below the capacity
	sick     bool
	lateFrom float64 // rate from which on the generator is late; 0: none
	accident float64 // probability that a step fails whatever its rate
	stuck    bool    // never rests after an overload
	delayed  bool    // the generator waits for a core
	whole    bool    // has histograms
}

func newServer(seed uint64, perS, noise float64) *server {
	return &server{perS: perS, noise: noise, rng: rand.New(rand.NewPCG(seed, 1))}
}

// capacity returns the true value: the rate at which p99 equals the limit.
func (s *server) capacity(limit time.Duration) float64 {
	return s.perS - math.Log(100)/limit.Seconds()
}

// options returns options of a search that uses only the server's clock.
func (s *server) options(text string, seed uint64) Options {
	objectives, err := slo.Parse(text)
	if err != nil {
		panic("the test's objectives are wrong: " + err.Error())
	}
	return Options{
		Offer: s.offer, SLO: objectives, Seed: seed, Window: 2 * time.Second,
		Budget: 2 * time.Minute, Confidence: 0.95, Now: func() int64 { return s.nowNs },
	}
}

func (s *server) offer(_ context.Context, step Step) (*record.Load, error) {
	s.steps = append(s.steps, step)
	s.nowNs += int64(step.Lead + step.Window)
	mu, rate := s.perS, step.RatePerS
	if rate > 0 && rate < 0.8*mu {
		s.sick = false
	}
	if s.sick {
		mu *= 1 - s.sticky
	}
	l := &record.Load{
		Model: "open", RatePerS: rate, WindowNs: int64(step.Window), DrainNs: 5e9, Threads: 1,
		Connections: 64, OwnLag: exponential(1000, 1e3),
	}
	if s.lateFrom > 0 && rate >= s.lateFrom {
		l.OwnLag = exponential(1000, 10e6)
		if s.delayed {
			l.Generator.RunDelayNs = l.WindowNs / 2
		}
	}
	w := step.Window.Seconds()
	switch {
	case rate == 0: // closed: the queue is always busy
		l.Model = record.Closed
		l.Connections = max(step.Connections, 1)
		if step.Connections == 0 {
			l.Connections = 64
		}
		s.answer(l, mu*w, float64(l.Connections)/mu)
		if s.stuck && s.sick && step.Phase == Quiet {
			l.ResponseTime.P50Ns *= 100
		}
	case rate >= 0.999*mu || s.rng.Float64() < s.accident: // the queue grows
		s.sick = s.sticky > 0 || s.stuck
		s.answer(l, min(mu, 0.9*rate)*w, w/2)
		l.Scheduled = int64(rate * w)
		l.BacklogPerS = max(rate-mu, 0.1*rate)
		l.Sent = l.Scheduled
		s.nowNs += int64(step.Window)
	default:
		s.answer(l, rate*w, 1/(mu-rate)*math.Exp(s.noise*s.rng.NormFloat64()))
	}
	return l, nil
}

// answer adds n requests with exponential response times of this mean in seconds.
func (s *server) answer(l *record.Load, n, mean float64) {
	k := int64(n)
	l.Scheduled, l.Sent, l.Done, l.Answered = k, k, k, k
	l.ThroughputPerS = n / (float64(l.WindowNs) / 1e9)
	l.InFlightMean = l.ThroughputPerS * mean
	l.ResponseTime = exponential(k, mean*1e9)
	if s.whole {
		l.ResponseTime.HDR = histogram(k, mean*1e9)
	}
	l.ServiceTime = l.ResponseTime
	l.Generator.CPUPerRequestNs = 4000
}

// exponential has no histogram, because a search would decode one for each step, which is not under
// test.
func exponential(n int64, meanNs float64) record.Dist {
	at := func(q float64) int64 { return int64(-math.Log(1-q) * meanNs) }
	return record.Dist{
		Count: n, MinNs: 1, MeanNs: meanNs, P50Ns: at(0.5), P90Ns: at(0.9), P99Ns: at(0.99),
		P999Ns: at(0.999), MaxNs: at(0.9999),
	}
}

// histogram has n exponential times at equal steps of probability.
func histogram(n int64, meanNs float64) string {
	h := hdrhistogram.New(1, 1<<40, 3)
	for i := range n {
		q := (float64(i) + 0.5) / float64(n)
		if err := h.RecordValue(int64(-math.Log(1-q) * meanNs)); err != nil {
			panic("the test's times are out of range: " + err.Error())
		}
	}
	blob, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		panic("encoding to memory cannot fail: " + err.Error())
	}
	return string(blob)
}
