// Package truth holds servers that are arithmetic: the moment at which a request is answered is a
// pure function of the moments at which it and those before it came. Whoever measures such a server
// can be held against a formula, and so can anybody's load generator.
//
//	request ─► Plan: a Reply, with its moment ─► queue of what is due ─► one thread sends it then
//
// A Plan is told of the requests in the order they came and knows no clock, so that it can be
// tested without one. Serve runs a Plan: one thread, which polls shortly before each moment, since
// a sleeping thread wakes too late (see Serve).
//
// Null, beside them, does nothing as fast as one can: it is the floor under every measurement.
//
// Non-goals: speed of the others, and HTTP at large: a request is whatever ends in an empty line,
// with a body when Content-Length says so.
package truth

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"time"
)

// Request is what a Plan knows of a request.
type Request struct {
	N      int64 // its number on the whole server, from 1
	OnConn int64 // likewise on its connection

	// The server's own bytes, which it takes back when the Plan returns.
	Method, Path, Body []byte
}

// Reply says what becomes of a request.
type Reply struct {
	At    int64         // when the answer leaves, in ns of the clock that told when it came
	Text  []byte        // the answer, as it goes over the wire
	First int           // with Step: bytes that leave at At, the rest one by one
	Step  time.Duration // between those; 0: the whole answer leaves at once
	Burn  time.Duration // processor time that the server spends on it before
	Then  End           // of the connection, afterwards
}

// Never is the moment of an answer that does not come.
const Never = math.MaxInt64

// End says what becomes of a connection after an answer.
type End uint8

// The ends of a connection.
const (
	Keep  End = iota
	Close     // in an orderly way
	Reset     // by a TCP reset
)

// Plan answers a request that came at now, in ns of any clock. It is called for each request in the
// order they came.
type Plan func(now int64, r Request) Reply

// The good answer and the one that is wrong, of the same length: only who looks at the bytes can
// tell.
var (
	good  = Answer("200 OK", "", Body)
	wrong = Answer("200 OK", "", bad)
	last  = Answer("200 OK", "Connection: close\r\n", Body)
	full  = Answer("503 Service Unavailable", "", bad)
)

// Body is the body of a good answer.
const Body = "ok"

const bad = "no"

// Answer is a whole one, of plain text; header has further lines, each with its CRLF.
func Answer(status, header, body string) []byte {
	const form = "HTTP/1.1 %s\r\nContent-Type: text/plain\r\n%sContent-Length: %d\r\n\r\n%s"
	return fmt.Appendf(nil, form, status, header, len(body), body)
}

// Fixed answers each request d after it came, any number of them at once: a service time of d and
// no queue. With N connections closed, throughput is N/d.
func Fixed(d time.Duration) Plan {
	return func(now int64, _ Request) Reply { return Reply{At: now + int64(d), Text: good} }
}

// Queue is a single server with a queue without bound, first come, first served. Request k takes
// draw(k) and is answered that long after it came or after request k-1 was answered, whichever is
// later (Lindley's recursion). Capacity is 1/s, s being the mean of the draws. Offered Poisson
// arrivals at λ, with ρ = λ·s < 1, the mean response time is
//
//	s + ρ·s/(2(1−ρ))  when all draws are s (M/D/1; Pollaczek and Khinchine)
//	s/(1−ρ)           when they are exponential (M/M/1; q-quantile: ln(1/(1−q)) of that)
func Queue(draw func(n int64) time.Duration) Plan { return servers(1, draw) }

// Cap serves n requests at once, d each; the others wait, first come, first served. Throughput is
// at most n/d; with C ≥ n connections closed it is that, and the response time is C·d/n.
func Cap(n int64, d time.Duration) Plan {
	return servers(n, func(int64) time.Duration { return d })
}

// servers is n servers with one queue: the next request goes to the one that is free first.
func servers(n int64, draw func(n int64) time.Duration) Plan {
	free := make([]int64, n) // when each will be, in increasing order
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

// origin is the moment of the first request.
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

// Stall freezes the whole server once for d, beginning after the first request by after: no request
// is taken up and no answer leaves in that time. Of arrivals at a rate R, d·R are held up, each by
// what is left of the freeze: uniform on (0, d]. The mean response time over a window T that holds
// the freeze is longer by d²/2T, the longest by d.
func Stall(after, d time.Duration, p Plan) Plan {
	return frozen(p, func(t time.Duration) time.Duration {
		if t >= after && t < after+d {
			return after + d
		}
		return t
	})
}

// Pause freezes the whole server again and again, for d at the end of each period: the moments are
// k·period−d after the first request, k = 1, 2, … A share of d/period of the arrivals is held up,
// and the mean response time is longer by d²/(2·period).
func Pause(period, d time.Duration, p Plan) Plan {
	return frozen(p, func(t time.Duration) time.Duration {
		if t%period >= period-d {
			return t - t%period + period
		}
		return t
	})
}

// frozen moves what happens in a freeze to its end; thaw does so with a time since the first
// request.
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

// WarmUp answers like Fixed with a service time that falls in a straight line: t after the first
// request it is from − (from−to)·t/over, and to from over on.
func WarmUp(from, to, over time.Duration) Plan {
	var first origin
	return func(now int64, _ Request) Reply {
		t := min(first.since(now), over)
		d := from - time.Duration(float64(from-to)*(float64(t)/float64(over)))
		return Reply{At: now + int64(d), Text: good}
	}
}

// Every changes the answer of each n-th request of the server, by its number: of k requests in all,
// ⌊k/n⌋ are changed.
func Every(n int64, change func(*Reply), p Plan) Plan {
	return func(now int64, r Request) Reply {
		out := p(now, r)
		if r.N%n == 0 {
			change(&out)
		}
		return out
	}
}

// Wrong is a change: the body has one letter that it should not have.
func Wrong(r *Reply) { r.Text = wrong }

// Torn is a change: the connection is reset in the midst of the answer's head. Without a byte of
// it, clients would take the connection for one that was closed before the request, and ask again.
func Torn(r *Reply) { r.Text, r.Then = r.Text[:tornAt], Reset }

// tornAt is how many bytes of a torn answer leave.
const tornAt = len("HTTP/1.1 2")

// Silent is a change: the answer never comes. The connection stays open.
func Silent(r *Reply) { r.At = Never }

// Hang answers like p until after the first request by after, and nothing that comes later.
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

// Drip answers with a body of n bytes: the first one d after the request came, each further one a
// step later. The last byte comes d + (n−1)·step after the request.
func Drip(d time.Duration, n int64, step time.Duration) Plan {
	text := Answer("200 OK", "", string(bytes.Repeat([]byte("."), int(n))))
	first := len(text) - int(n) + 1
	return func(now int64, _ Request) Reply {
		return Reply{At: now + int64(d), Text: text, First: first, Step: step}
	}
}

// Shed serves at most n requests at once, d each, and refuses the others with status 503 as soon as
// they come. Of Poisson arrivals at λ, with a = λ·d, the share refused is Erlang's B(n, a) =
// aⁿ/n! / Σ aᵏ/k!, k = 0…n.
func Shed(n int64, d time.Duration) Plan {
	ends := make([]int64, n) // a ring: all take d, so that they end in the order they came
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

// Renew answers n requests of a connection, announces with the n-th that it will close, and closes:
// k requests take at least k/n connections.
func Renew(n int64, p Plan) Plan {
	return func(now int64, r Request) Reply {
		out := p(now, r)
		if r.OnConn >= n {
			out.Text, out.Then = last, Close
		}
		return out
	}
}

// Busy is Queue in processor time: a single server that burns draw(k) for request k and takes up no
// other one meanwhile. If the machine interrupts it, the service takes longer, as that of a real
// server does. Serve records how long each one took.
func Busy(draw func(n int64) time.Duration) Plan {
	return func(now int64, r Request) Reply {
		return Reply{At: now, Text: good, Burn: draw(r.N)}
	}
}

// Burn spends d of processor time on each request and answers then. It is a queue too, with a
// capacity of 1/d, for there is one thread.
func Burn(d time.Duration) Plan { return Busy(func(int64) time.Duration { return d }) }
