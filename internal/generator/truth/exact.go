// Package truth provides servers with computable responses: the time of each response is a pure
// function of the arrival times of its request and the earlier ones. Measurements of such a server
// by any load generator can be compared with a formula.
//
//	request ─► Plan: a Reply with its time ─► queue of due replies ─► one thread sends it then
//
// A Plan gets the requests in order of arrival and is independent of clocks, so tests need none.
// Serve runs a Plan in one thread, which polls shortly before each time, because a sleeping thread
// wakes too late (see Serve).
//
// Null responds as fast as possible: it is the lower limit of every measurement.
//
// Non-goals: speed of the other servers, and general HTTP: a request is text that ends with an
// empty line, with a body if Content-Length says so.
package truth

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"time"
)

// Request is a request as a Plan gets it.
type Request struct {
	N      int64 // number on the server, from 1
	OnConn int64 // number on its connection, from 1

	// The server's buffers, which are valid until the Plan returns.
	Method, Path, Body []byte
}

// Reply describes the response to a request.
type Reply struct {
	At    int64         // time of sending, in ns of the clock of the arrival time
	Text  []byte        // the response as it is sent
	First int           // with Step: number of bytes that are sent at At, the others one by one
	Step  time.Duration // between single bytes; 0: the whole response is sent at once
	Burn  time.Duration // processor time that the server spends before sending
	Then  End           // what happens to the connection afterwards
}

// Never is the time of a response that is never sent.
const Never = math.MaxInt64

// End is what happens to a connection after a response.
type End uint8

// The ends of a connection.
const (
	Keep  End = iota
	Close     // orderly
	Reset     // with a TCP reset
)

// Plan returns the response to a request that arrived at now, in ns of any clock. It is called for
// the requests in order of arrival.
type Plan func(now int64, r Request) Reply

// Good and wrong responses have the same length, so only a check of the bytes distinguishes them.
var (
	good  = Answer("200 OK", "", Body)
	wrong = Answer("200 OK", "", bad)
	last  = Answer("200 OK", "Connection: close\r\n", Body)
	full  = Answer("503 Service Unavailable", "", bad)
)

// Body is the body of a good response.
const Body = "ok"

const bad = "no"

// Answer returns a response with a plain text body; header has further lines, each with its CRLF.
func Answer(status, header, body string) []byte {
	const form = "HTTP/1.1 %s\r\nContent-Type: text/plain\r\n%sContent-Length: %d\r\n\r\n%s"
	return fmt.Appendf(nil, form, status, header, len(body), body)
}

// Fixed responds to each request after d, with unlimited concurrency: a service time of d and no
// queue. With N closed connections, throughput is N/d.
func Fixed(d time.Duration) Plan {
	return func(now int64, _ Request) Reply { return Reply{At: now + int64(d), Text: good} }
}

// Queue is a single server with an unbounded queue, first come, first served. Request k takes
// draw(k), from its arrival or from the end of request k-1, whichever is later (Lindley's
// recursion). Capacity is 1/s, where s is the mean of the draws. With Poisson arrivals at λ and ρ =
// λ·s < 1, the mean response time is
//
//	s + ρ·s/(2(1−ρ))  when all draws are s (M/D/1; Pollaczek and Khinchine)
//	s/(1−ρ)           when they are exponential (M/M/1; q-quantile: ln(1/(1−q)) of that)
func Queue(draw func(n int64) time.Duration) Plan { return servers(1, draw) }

// Cap serves n requests at once, d each; the others wait, first come, first served. Throughput is
// at most n/d. With C ≥ n closed connections throughput is n/d and the response time C·d/n.
func Cap(n int64, d time.Duration) Plan {
	return servers(n, func(int64) time.Duration { return d })
}

// servers has n servers with one queue: the next request goes to the server that is free first.
func servers(n int64, draw func(n int64) time.Duration) Plan {
	free := make([]int64, n) // times at which servers become free, ascending
	for i := range free {
		free[i] = math.MinInt64
	}
	return func(now int64, r Request) Reply {
		end := max(free[0], now) + int64(draw(r.N))
		index, _ := slices.BinarySearch(free[1:], end)
		copy(free, free[1:index+1])
		free[index] = end
		return Reply{At: end, Text: good}
	}
}

// origin is the time of the first request.
type origin struct {
	atNs  int64
	known bool
}

func (o *origin) since(now int64) time.Duration {
	if !o.known {
		o.atNs, o.known = now, true
	}
	return time.Duration(now - o.atNs)
}

// Stall freezes the server once for d, from after on, counted from the first request: during a
// freeze it accepts no request and sends no response. Of arrivals at a rate R, d·R are delayed,
// each by the rest of the freeze: uniform on (0, d]. The mean response time over a window T with
// the freeze increases by d²/2T, the longest by d.
func Stall(after, d time.Duration, p Plan) Plan {
	return frozen(p, func(t time.Duration) time.Duration {
		if t >= after && t < after+d {
			return after + d
		}
		return t
	})
}

// Pause freezes the server repeatedly, for d at the end of each period: at k·period−d after the
// first request, k = 1, 2, … A share of d/period of the arrivals is delayed, and the mean response
// time increases by d²/(2·period).
func Pause(period, d time.Duration, p Plan) Plan {
	return frozen(p, func(t time.Duration) time.Duration {
		if t%period >= period-d {
			return t - t%period + period
		}
		return t
	})
}

// frozen moves events during a freeze to its end; thaw maps times since the first request.
func frozen(p Plan, thaw func(time.Duration) time.Duration) Plan {
	var first origin
	return func(now int64, r Request) Reply {
		first.since(now)
		out := p(first.atNs+int64(thaw(first.since(now))), r)
		if out.At != Never {
			out.At = first.atNs + int64(thaw(time.Duration(out.At-first.atNs)))
		}
		return out
	}
}

// WarmUp responds like Fixed with a linearly falling service time: t after the first request it is
// from − (from−to)·t/over, and from over on it is to.
func WarmUp(from, to, over time.Duration) Plan {
	var first origin
	return func(now int64, _ Request) Reply {
		t := min(first.since(now), over)
		d := from - time.Duration(float64(from-to)*(float64(t)/float64(over)))
		return Reply{At: now + int64(d), Text: good}
	}
}

// Every changes the response to each n-th request of the server: of k requests, ⌊k/n⌋ responses are
// changed.
func Every(n int64, change func(*Reply), p Plan) Plan {
	return func(now int64, r Request) Reply {
		out := p(now, r)
		if r.N%n == 0 {
			change(&out)
		}
		return out
	}
}

// Wrong changes a response: its body has one wrong letter.
func Wrong(r *Reply) { r.Text = wrong }

// Torn changes a response: the connection is reset within its head. If no byte was sent, clients
// would assume that the connection was closed before the request, and send it again.
func Torn(r *Reply) { r.Text, r.Then = r.Text[:tornAt], Reset }

// tornAt is the number of bytes of a torn response that are sent.
const tornAt = len("HTTP/1.1 2")

// Silent changes a response: it is never sent. The connection stays open.
func Silent(r *Reply) { r.At = Never }

// Hang responds like p until after has passed since the first request, and then never again.
func Hang(after time.Duration, p Plan) Plan {
	var first origin
	return func(now int64, r Request) Reply {
		out := p(now, r)
		if first.since(now) >= after {
			Silent(&out)
		}
		return out
	}
}

// Drip responds with a body of n bytes: the first one d after the request, each further one a step
// later, the last one after d + (n−1)·step.
func Drip(d time.Duration, n int64, step time.Duration) Plan {
	text := Answer("200 OK", "", string(bytes.Repeat([]byte("."), int(n))))
	first := len(text) - int(n) + 1
	return func(now int64, _ Request) Reply {
		return Reply{At: now + int64(d), Text: text, First: first, Step: step}
	}
}

// Shed serves at most n requests at once, d each, and refuses others at once with status 503. Of
// Poisson arrivals at λ, with a = λ·d, the refused share is Erlang's B(n, a) = aⁿ/n! / Σ aᵏ/k!, k =
// 0…n.
func Shed(n int64, d time.Duration) Plan {
	ends := make([]int64, n) // a ring: all take d, so they end in order of arrival
	for i := range ends {
		ends[i] = math.MinInt64
	}
	next := 0
	return func(now int64, _ Request) Reply {
		if ends[next] > now {
			return Reply{At: now, Text: full}
		}
		ends[next] = now + int64(d)
		next = (next + 1) % len(ends)
		return Reply{At: now + int64(d), Text: good}
	}
}

// Renew serves n requests per connection, announces with the n-th response that it closes the
// connection, and closes it: k requests take at least k/n connections.
func Renew(n int64, p Plan) Plan {
	return func(now int64, r Request) Reply {
		out := p(now, r)
		if r.OnConn >= n {
			out.Text, out.Then = last, Close
		}
		return out
	}
}

// Busy is Queue in processor time: a single server that burns draw(k) for request k and meanwhile
// accepts no other request. If the machine interrupts it, the service takes longer, like a real
// server's. Serve records how long each service took.
func Busy(draw func(n int64) time.Duration) Plan {
	return func(now int64, r Request) Reply {
		return Reply{At: now, Text: good, Burn: draw(r.N)}
	}
}

// Burn spends d of processor time on each request before its response. It is also a queue, with a
// capacity of 1/d, because it has one thread.
func Burn(d time.Duration) Plan { return Busy(func(int64) time.Duration { return d }) }
