package load

import (
	"slices"
	"testing"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/load/engine"
	"prony.example/record"
)

// permitting is a fake engine that queues: its server permits a number of requests at once, and the
// others wait in the engine, in order. As over HTTP/2, a batch of requests leaves together when a
// Wait begins or ends.
type permitting struct {
	*fake
	permits int
	waits   []inLine
	freeNs  int64         // of the last event
	batch   time.Duration // how long a Wait takes before requests leave
}

// inLine is a request that waits in the engine.
type inLine struct {
	slot    int
	b       []byte
	delayed bool // longer than to the end of the batch
}

func (w *world) permitting(permits int) *world {
	w.wrap = func(f *fake) Engine { return &permitting{fake: f, permits: permits} }
	return w
}

func (p *permitting) Queues() bool { return true }

func (p *permitting) Send(i int, b []byte) {
	p.waits = append(p.waits, inLine{i, b, p.under()+len(p.waits) >= p.permits})
}

// under returns the number of requests under way.
func (p *permitting) under() (n int) {
	for i := range p.slots {
		if p.slots[i].busy {
			n++
		}
	}
	return n
}

func (p *permitting) Close(i int) {
	p.waits = slices.DeleteFunc(p.waits, func(x inLine) bool { return x.slot == i })
	p.fake.Close(i)
}

func (p *permitting) Wait(deadline int64, h Handler) error {
	time.Sleep(p.batch)
	p.leave(h)
	err := p.fake.Wait(deadline, permittingEar{h, p})
	p.leave(h)
	return err
}

func (p *permitting) leave(h Handler) {
	for len(p.waits) > 0 && p.under() < p.permits {
		x := p.waits[0]
		p.waits = p.waits[1:]
		freeNs := int64(engine.AtOnce)
		if x.delayed {
			freeNs = p.freeNs
		}
		h.(engine.Departures).Sent(x.slot, freeNs, clock.Mono())
		p.fake.Send(x.slot, x.b)
	}
}

// permittingEar lets waiting requests leave after each event, at the same moment.
type permittingEar struct {
	Handler
	p *permitting
}

func (e permittingEar) Received(i int, atNs int64, b []byte) {
	e.p.freeNs = atNs
	e.Handler.Received(i, atNs, b)
	e.p.leave(e.Handler)
}

// The wait for a stream is part of the response time but not of the service time, and the number of
// requests under way is that of the server.
func TestQueueOfStreams(t *testing.T) {
	const service = 10 * ms
	w := (&world{serve: after(time.Duration(service))}).permitting(5)
	r := good(t, w, Spec{Model: record.Closed, Connections: 50, Lead: time.Second,
		Window: time.Second, Drain: time.Second})
	if w.most != 5 {
		t.Errorf("%d requests were under way at once", w.most)
	}
	if s := r.ServiceTime; s.MinNs < service*999/1000 || s.MaxNs > service*1001/1000 {
		t.Errorf("service times are from %d to %d ns, want %d", s.MinNs, s.MaxNs, service)
	}
	// 5 streams serve 50 connections, so each request waits for 9 others, of 10 ms each.
	if d := r.ResponseTime; d.MinNs < 10*service*999/1000 || d.MaxNs > 10*service*1001/1000 {
		t.Errorf("response times are from %d to %d ns, want %d", d.MinNs, d.MaxNs, 10*service)
	}
	if l := r.Lag; l.MinNs < 9*service*999/1000 || l.MaxNs > 9*service*1001/1000 {
		t.Errorf("lags are from %d to %d ns, want %d", l.MinNs, l.MaxNs, 9*service)
	}
	if r.InFlightMean < 4.99 || r.InFlightMean > 5.01 {
		t.Errorf("%v requests were under way on average, want 5", r.InFlightMean)
	}
	if r.Done != 500 || r.Waited != r.Answered || r.Errors.Total() != 0 || r.Censored != 0 {
		t.Errorf("%d done, %d of %d waited, %d unanswered, %+v", r.Done, r.Waited, r.Answered,
			r.Censored, r.Errors)
	}
	if own := r.workerLate(); own != 0 {
		t.Errorf("the generator is %d ns late", own)
	}
}

// workerLate returns the greatest own lag.
func (r *Result) workerLate() int64 {
	return r.Ledger.total.ownLag.Max() - 1 // 0 is recorded as 1
}

// Without a limit that matters, a request of a closed load is due when it leaves the engine, at the
// end of the batch. If the window closes within the batch, the request still belongs to it.
func TestQueueWithoutWaits(t *testing.T) {
	check := func(batch, window time.Duration, done int64, lag time.Duration) {
		t.Helper()
		w := &world{serve: after(10 * time.Millisecond)}
		w.wrap = func(f *fake) Engine { return &permitting{fake: f, permits: 50, batch: batch} }
		r := good(t, w, Spec{Model: record.Closed, Connections: 50, Window: window,
			Drain: time.Second})
		late := r.Ledger.total.lag.Max() - 1 // 0 is recorded as 1
		if r.Waited != 0 || r.Lag.Count != 0 || r.ResponseTime != r.ServiceTime ||
			r.Answered != done || r.Scheduled != done || late/1000 != lag.Microseconds() {
			t.Errorf("%d waited, %d of %d answered, lag %+v, at most %d ns, response time %+v, "+
				"service time %+v", r.Waited, r.Answered, r.Scheduled, r.Lag, late,
				r.ResponseTime, r.ServiceTime)
		}
	}
	check(0, time.Second, 5000, 0)
	check(time.Millisecond, 100*time.Millisecond, 50*10, 0)
	check(time.Millisecond, 500*time.Microsecond, 50, time.Millisecond)
}

// In an open load, a request that waits for a stream has waited as for a connection, which is no
// delay of the generator's own.
func TestQueueOfOpenLoad(t *testing.T) {
	service := func(n int) int64 { // of request n, from 1
		if n <= 20 {
			return 10 * ms
		}
		return ms
	}
	w := (&world{serve: func(c call) reply {
		return answer(time.Duration(service(c.n)), "ok")
	}}).permitting(1)
	r := good(t, w, Spec{Model: record.Open, Connections: 50, Schedule: even(200),
		Window: time.Second, Drain: time.Second})
	var waited, lag, free int64
	for n := range 200 { // Lindley's recursion
		due := int64(n) * 5 * ms
		left := max(due, free)
		if free = left + service(n+1); left > due {
			waited, lag = waited+1, max(lag, left-due)
		}
	}
	if r.Waited != waited || r.Answered != 200 || r.Scheduled != 200 ||
		r.Lag.MaxNs < lag*999/1000 || r.Lag.MaxNs > lag*1001/1000 {
		t.Errorf("%d waited, want %d; %d of %d answered; lag at most %d ns, want %d", r.Waited,
			waited, r.Answered, r.Scheduled, r.Lag.MaxNs, lag)
	}
	if r.ServiceTime.MaxNs > 10*ms*1001/1000 || r.workerLate() != 0 {
		t.Errorf("service times to %d ns, own lag to %d ns", r.ServiceTime.MaxNs, r.workerLate())
	}
	if sum := r.Lag.MeanNs + r.ServiceTime.MeanNs; sum < r.ResponseTime.MeanNs*0.999 ||
		sum > r.ResponseTime.MeanNs*1.001 {
		t.Errorf("lag and service time are %v ns together, response time is %v ns", sum,
			r.ResponseTime.MeanNs)
	}
}

// A request that times out before it leaves has a response time but no service time, and is not
// under way.
func TestQueueTimeout(t *testing.T) {
	w := (&world{serve: func(call) reply { return reply{} }}).permitting(1)
	r := good(t, w, Spec{Model: record.Closed, Connections: 4, Window: 90 * time.Millisecond,
		Drain: time.Second, Timeout: 100 * time.Millisecond})
	if r.Errors.Timeout != 4 || r.Scheduled != 4 || r.Censored != 0 || r.ResponseTime.Count != 4 ||
		r.ServiceTime.Count != 1 || r.InFlightMean != 1 {
		t.Errorf("%d of %d timed out, %d response times, %d service times, %v under way",
			r.Errors.Timeout, r.Scheduled, r.ResponseTime.Count, r.ServiceTime.Count,
			r.InFlightMean)
	}
}

// A request that waits when its connection ends leaves once, later, and counts as sent once.
func TestQueueMoves(t *testing.T) {
	check := func(requests int64, reconnect time.Duration) {
		t.Helper()
		moved := false
		w := &world{serve: after(10 * time.Millisecond)}
		w.connect = func(n int) (time.Duration, error) {
			if n > 2 {
				return reconnect, nil
			}
			return 0, nil
		}
		w.wrap = func(f *fake) Engine {
			return &moving{permitting{fake: f, permits: 1}, &moved}
		}
		r := good(t, w, Spec{Model: record.Closed, Connections: 2, Requests: requests,
			Window: time.Second, Drain: time.Second})
		if !moved || r.Retried != 0 || r.Answered != requests || r.Scheduled != requests ||
			int64(len(w.calls)) != requests || r.ServiceTime.MaxNs > 10*ms*1001/1000 {
			t.Errorf("moved: %v, %d sent again, %d of %d answered, service times to %d ns", moved,
				r.Retried, r.Answered, r.Scheduled, r.ServiceTime.MaxNs)
		}
	}
	check(10, 0)
	check(2, 50*time.Millisecond) // nothing is under way while the last request waits
}

// moving is permitting that once ends the connection of a request that waits.
type moving struct {
	permitting
	moved *bool
}

func (m *moving) Wait(deadline int64, h Handler) error {
	if m.leave(h); len(m.waits) > 0 && !*m.moved {
		*m.moved = true
		i := m.waits[0].slot
		m.Close(i)
		h.Closed(i, clock.Mono(), Reading, Untaken("the server goes away"))
	}
	return m.permitting.Wait(deadline, h)
}
