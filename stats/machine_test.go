package stats

import (
	"bytes"
	"compress/gzip"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"sync"
	"testing"
)

// Simulation of a machine whose speed changes, of services that do known work on it, and of starts
// with slices. Times are in ms.

// binMs is the resolution of the machine's speed.
const binMs = 2.0

// speeds has, for each bin, the work that a service does per ms (1 on a quiet machine), and the
// share of the bin in which the service has the processor.
type speeds struct{ work, share []float64 }

// machine returns the speeds of a number of bins.
type machine func(r *rand.Rand, bins int) speeds

// drifting is a model: the log speed is the sum of two autoregressions, of 200 ms and 5 s, with SDs
// of 8 and 15 %, and the hypervisor takes the processor once per second, for 10 ms on average.
func drifting(r *rand.Rand, bins int) speeds {
	s := speeds{make([]float64, bins), make([]float64, bins)}
	fast, slow, stolen := 0.08*r.NormFloat64(), 0.15*r.NormFloat64(), 0.0
	const keepFast, keepSlow = 1 - binMs/200, 1 - binMs/5000
	stepFast := 0.08 * math.Sqrt(1-keepFast*keepFast)
	stepSlow := 0.15 * math.Sqrt(1-keepSlow*keepSlow)
	level := 1.0
	for i := range s.work {
		if i%4 == 0 { // four bins per step, because normal values dominate the cost
			fast = math.Pow(keepFast, 4)*fast + 2*stepFast*r.NormFloat64()
			slow = math.Pow(keepSlow, 4)*slow + 2*stepSlow*r.NormFloat64()
			level = math.Exp(fast + slow)
		}
		if stolen <= 0 && r.Float64() < binMs/1000 {
			stolen = 10 * r.ExpFloat64()
		}
		part := min(binMs, max(0, stolen)) / binMs
		stolen -= binMs
		s.share[i] = 1 - part
		s.work[i] = level * s.share[i]
	}
	return s
}

// recorded is a machine from a trace of BenchmarkSpeedTrace in package bench: each start begins at
// a random bin, and wraps around at the end.
func recorded(t testing.TB, name string) machine {
	t.Helper()
	trace := readTrace(t, name)
	return func(r *rand.Rand, bins int) speeds {
		s := speeds{make([]float64, bins), make([]float64, bins)}
		at := r.IntN(len(trace.work))
		for i := range s.work {
			s.work[i], s.share[i] = trace.work[at], trace.share[at]
			at = (at + 1) % len(trace.work)
		}
		return s
	}
}

var traces sync.Map // by name

func readTrace(t testing.TB, name string) speeds {
	t.Helper()
	if known, ok := traces.Load(name); ok {
		return known.(speeds)
	}
	packed, err := os.ReadFile(filepath.Join("testdata", "speed", name+".gz"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	pairs, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	var s speeds
	for pair := range slices.Chunk(pairs, 2) {
		s.work = append(s.work, float64(pair[0]))
		s.share = append(s.share, float64(pair[1])/255*2.5/binMs)
	}
	level := mean(s.work)
	for i := range s.work {
		s.work[i] /= level
	}
	traces.Store(name, s)
	return s
}

// host is a machine in one start: sums up to the end of each bin.
type host struct{ work, busy []float64 }

func newHost(r *rand.Rand, m machine, totalMs float64) host {
	s := m(r, int(totalMs/binMs)+2)
	h := host{make([]float64, len(s.work)+1), make([]float64, len(s.work)+1)}
	for i := range s.work {
		h.work[i+1] = h.work[i] + s.work[i]*binMs
		h.busy[i+1] = h.busy[i] + s.share[i]*binMs
	}
	return h
}

// read returns a sum up to a moment; within a bin it grows linearly.
func read(sums []float64, moment float64) float64 {
	x := moment / binMs
	i := min(int(x), len(sums)-2)
	return sums[i] + (x-float64(i))*(sums[i+1]-sums[i])
}

// when returns the first moment at which this much work is done.
func (h host) when(work float64) float64 {
	i := sort.SearchFloat64s(h.work, work)
	if i == 0 {
		return 0
	}
	if i == len(h.work) {
		return float64(i-1) * binMs
	}
	return binMs * (float64(i) - (h.work[i]-work)/(h.work[i]-h.work[i-1]))
}

// service handles requests with known work, and occasional events, for example a garbage
// collector's pause.
type service struct {
	request float64 // work of a request, in ms at speed 1
	event   float64 // work of an event; 0: no events
	every   float64 // work of requests between two events, on average
	regular bool    // events are evenly spaced; otherwise at random (Poisson)

	next float64 // work of requests until the next event
}

// begin draws the state of the service at the beginning of a start.
func (s *service) begin(r *rand.Rand) {
	s.next = math.Inf(1)
	if s.event > 0 {
		s.next = s.every * r.ExpFloat64()
		if s.regular {
			s.next = s.every * r.Float64()
		}
	}
}

func (s *service) again(r *rand.Rand) {
	s.next = s.every
	if !s.regular {
		s.next *= r.ExpFloat64()
	}
}

// slice loads the service from a moment on. The window begins at the first completion after lead,
// and ends at the first one after lead and window: during an event nothing completes. If one event
// covers both moments, the window is one request long. Cut edges are at their planned moments.
func (s *service) slice(r *rand.Rand, h host, d design, began float64) (row SliceRow,
	ended float64) {
	position := read(h.work, began)
	opened := -1.0
	began += d.shift * r.Float64() // a longer lead-in
	d.window *= 1 + d.vary*r.Float64()
	var done float64 // work of requests within the window
	for {
		edge := began + d.lead
		if opened >= 0 {
			edge = max(edge+d.window, h.when(position+s.request))
			if d.cut {
				edge = began + d.lead + d.window
			}
		}
		part := read(h.work, edge) - position // until the edge, without events
		event := part >= s.next
		if event {
			part = s.next
		}
		if opened >= 0 {
			done += part
		}
		s.next -= part
		position += part
		ended = edge
		if event {
			position += s.event
			s.again(r)
			if ended = h.when(position); ended < edge {
				continue
			}
			if !d.cut {
				edge = ended
			}
		}
		if opened >= 0 {
			busy := read(h.busy, edge) - read(h.busy, opened)
			row = SliceRow{Requests: int64(done / s.request), TimeNs: int64((edge - opened) * ms),
				CPUNs: int64(busy * ms)}
			if d.covariates {
				row.Covariates = []float64{1 - busy/(edge-opened)}
			}
			return row, ended
		}
		opened = edge
	}
}

// design configures starts.
type design struct {
	machine      machine
	rounds       int
	lead, window float64
	shift        float64 // maximum random shift of the window's beginning
	vary         float64 // maximum random extension of the window, as a share
	cut          bool    // windows end at their planned moments: the refused method
	covariates   bool    // rows have the share of time that other processes took
}

// usual is the design in docs/slices.md: windows of 40 to 80 ms.
func usual(m machine) design {
	return design{machine: m, rounds: 100, lead: 20, window: 40, vary: 1}
}

// start simulates one start of these services, in random order in each round.
func (d design) start(r *rand.Rand, services []service) *Rounds {
	slice := d.lead + d.shift + d.window*(1+d.vary) + 0.1 // the last: switching the target
	longest := 0.0
	for i := range services {
		services[i].begin(r)
		longest = max(longest, services[i].event)
	}
	h := newHost(r, d.machine, float64(d.rounds*len(services))*slice*1.5+20*longest+1000)
	rows := make([]SliceRow, 0, d.rounds*len(services))
	now := 0.0
	for round := range d.rounds {
		for _, target := range r.Perm(len(services)) {
			row, ended := services[target].slice(r, h, d, now)
			row.Round, row.Target = round, target
			rows = append(rows, row)
			now = ended + 0.1
		}
	}
	return NewRounds(rows)
}

// equal returns services with 20 µs per request.
func equal(count int) []service { return slices.Repeat([]service{{request: 0.02}}, count) }

// eventful adds events to a service that cost a share of its time and occur this often in the
// windows of a start, on average.
func (d design) eventful(s service, perStart, share float64, regular bool) service {
	loaded := float64(d.rounds) * d.window * (1 + d.vary/2)
	s.event = share * loaded / perStart
	s.every = (1 - share) * loaded / perStart
	s.regular = regular
	return s
}
