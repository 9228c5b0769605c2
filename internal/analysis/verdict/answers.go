package verdict

import (
	"math"
	"slices"

	"prony.example/record"
)

const (
	sumsMax       = 0.01           // of the answers; a foreign tool's counts may differ
	littleMax     = 0.05           // suspect above
	littleWrong   = 0.20           // invalid above
	littleAnswers = 100            // fewer say nothing about a mean
	errorsMax     = 0.001          // of the requests; invalid above
	censoredMax   = 0.01           // likewise
	reconnectsMax = 0.01           // of the requests
	keepsNone     = 0.99           // of them; a window's last ones are kept by nobody
	rangeNs       = int64(1) << 40 // package load's histograms end here
)

func answers(_ *record.Record, l *load) *record.Finding {
	if l.Done > 0 {
		return nil
	}
	return invalid(record.Finding{Limit: 1, Unit: record.UnitCount, Side: record.Below,
		Facts: record.Facts{Messages: said(l.Errors.Example)}})
}

// sums holds the histogram of response times against the counters. Prony's own are booked together,
// so that a difference is a defect. Foreign tools invent samples, or keep the first million only;
// some time what failed and some do not.
func sums(_ *record.Record, l *load) *record.Finding {
	have, want := l.ResponseTime.Count, l.Answered+l.Errors.Timeout
	if l.Driver != "" {
		return foreignSums(l.Load)
	}
	switch {
	case l.Censored < 0:
		return invalid(in("ends", with(record.Facts{Count: -l.Censored}, record.Finding{})))
	case have == want:
		return nil
	}
	return invalid(in("times", with(record.Facts{Count: have, Total: want}, record.Finding{})))
}

func foreignSums(l *record.Load) *record.Finding {
	have := max(l.ResponseTime.Count, l.ServiceTime.Count)
	least := (1 - sumsMax) * float64(l.Answered)
	most := (1 + sumsMax) * float64(l.Answered+l.Errors.Total())
	if have == 0 || float64(have) >= least && float64(have) <= most {
		return nil
	}
	deviation := math.Abs(float64(have-l.Answered)) / float64(max(l.Answered, 1))
	return suspect(
		in("tool", with(record.Facts{Count: have, Total: l.Answered}, share(deviation, sumsMax))),
	)
}

// order leaves out what a foreign tool does not say.
func order(_ *record.Record, l *load) *record.Finding {
	for _, d := range append(l.routes(), l.ResponseTime, l.ServiceTime, l.FirstByte, l.Lag,
		l.OwnLag, l.PunctualTime, l.ErrorTime, l.ConnectTime, l.TLSTime, l.FlowTime,
		l.Generator.Wakeup) {
		v := []int64{d.MinNs, d.P50Ns, d.P90Ns, d.P99Ns, d.P999Ns, d.MaxNs}
		low, high, owner := d.MinNs, d.MaxNs, "Prony"
		if l.Driver != "" { // what is 0 it does not say
			v = slices.DeleteFunc(v, func(ns int64) bool { return ns == 0 })
			owner = l.Driver
			if d.MeanNs == 0 {
				low = 0
			}
			if d.MaxNs == 0 {
				high = math.MaxInt64
			}
		} else if low < 1 && d.Count > 0 {
			v = append(v, 0) // nothing takes no time
		}
		inside := d.MeanNs >= float64(low) && d.MeanNs <= float64(high)
		if d.Count > 0 && (!slices.IsSorted(v) || !inside) {
			return invalid(with(record.Facts{TimesNs: v, MeanNs: d.MeanNs, Name: owner},
				record.Finding{}))
		}
	}
	return nil
}

func (l *load) routes() (all []record.Dist) {
	for i := range l.Routes {
		all = append(all, l.Routes[i].ResponseTime, l.Routes[i].ServiceTime)
	}
	return all
}

func failures(_ *record.Record, l *load) *record.Finding {
	n := l.Errors.Total()
	if n == 0 {
		return nil
	}
	part := float64(n) / float64(l.Answered+n)
	facts := record.Facts{Count: n, Total: l.Answered + n, Closed: l.Errors.Closed,
		Messages: said(l.Errors.Example)}
	if float64(n) > errorsMax*float64(l.Answered+n) {
		return invalid(in("many", with(facts, share(part, errorsMax))))
	}
	times := l.times()
	moves := moves(l.Load, part, func(q float64) float64 {
		return max(times.below(q, part), times.beyond(q, part))
	})
	return orCause(with(facts, share(part, 0)), moves)
}

// retried names a service that closes connections while requests are on their way to it. Each such
// request went to a new connection; its time has both, so that no number is in doubt.
func retried(_ *record.Record, l *load) *record.Finding {
	all := l.Answered + l.Errors.Total()
	if float64(l.Retried) <= errorsMax*float64(all) {
		return nil
	}
	return remark(with(record.Facts{Count: l.Retried, Total: all},
		share(float64(l.Retried)/float64(all), errorsMax)))
}

func censored(_ *record.Record, l *load) *record.Finding {
	if l.Censored <= 0 || l.Scheduled == 0 {
		return nil
	}
	part := float64(l.Censored) / float64(l.Scheduled)
	facts := record.Facts{Count: l.Censored, Total: l.Scheduled}
	if float64(l.Censored) > censoredMax*float64(l.Scheduled) {
		return invalid(with(facts, share(part, censoredMax)))
	}
	times := l.times()
	return orCause(with(facts, share(part, 0)), moves(l.Load, 0, func(q float64) float64 {
		return times.beyond(q, part)
	}))
}

// little holds the requests under way against the time that requests took, over the window. Two
// kinds took a time that the record only bounds, so the law gives a range: failed ones, whose time
// is from when they were due and may hold a wait for a connection, and censored ones, each of which
// holds a connection, or one of its streams, for the whole window at most. Timeouts have their
// service time like good answers. Thinking users are not under way, and their pauses in no time.
// What came into the window from before, as after a pause of the service, is counted, and so is
// what reaches over its end. A generator that does not say so has edges that make up for each
// other, but where the rate changes: then they differ by as many as came or went, for as long as
// one takes.
func little(_ *record.Record, l *load) *record.Finding {
	requests := l.ServiceTime.Count + l.ErrorTime.Count
	if requests < littleAnswers || l.WindowNs <= 0 || l.InFlightMean <= 0 {
		return nil
	}
	wrong := float64(max(l.ErrorTime.Count-l.Errors.Timeout, 0))
	least := l.ServiceTime.MeanNs*float64(l.ServiceTime.Count)/float64(l.WindowNs) +
		l.CarriedInMean - l.CarriedOutMean
	most := least + l.ErrorTime.MeanNs*wrong/float64(l.WindowNs) +
		float64(min(max(l.Censored, 0),
			int64(l.Connections+l.ConnectionsAdded)*int64(max(l.Streams, 1))))
	edge := swell(l.Load) * l.ServiceTime.MeanNs / float64(l.WindowNs)
	want := min(max(l.InFlightMean, least-edge), most+edge)
	deviation := math.Abs(l.InFlightMean-want) / l.InFlightMean
	f := with(record.Facts{Observed: l.InFlightMean, Expected: want}, share(deviation, littleMax))
	switch {
	case deviation > littleWrong:
		return invalid(f)
	case deviation > littleMax:
		return suspect(f)
	}
	return nil
}

// said are the words of others, if there are any.
func said(words string) []string {
	if words == "" {
		return nil
	}
	return []string{words}
}

// clipped looks for times that a histogram could not hold; a foreign tool's has other ends.
func clipped(_ *record.Record, l *load) *record.Finding {
	longest := int64(0)
	for _, d := range append(l.routes(), l.ResponseTime, l.ServiceTime, l.ErrorTime, l.FlowTime) {
		longest = max(longest, d.MaxNs)
	}
	if longest < rangeNs || l.Driver != "" {
		return nil
	}
	return suspect(nanoseconds(longest, rangeNs))
}

// connectionNs is the least that a new TCP connection is taken to cost of a service's processor
// time. By prony load --churn 1 beside --churn 0, on one core, a server in Go spent 58 µs on each,
// of 17 µs a request, one in JavaScript 84 of 17, and one in Python 124 of 390: what is slow at
// requests is so at connections.
const connectionNs = 100e3

// reconnects bounds what connections did that the service closed, as many servers do after a
// hundred requests. Each took of the service's time, with TLS's, and all of its own until it was
// there; and so many requests were the first of one, which wait until they are accepted. A service
// that keeps none does so to all its clients: its numbers are of a request and its connection.
func reconnects(r *record.Record, l *load) *record.Finding {
	if l.Done == 0 || float64(l.Reconnects) <= reconnectsMax*float64(l.Done) {
		return nil
	}
	f := record.Finding{Value: float64(l.Reconnects) / float64(l.Done), Unit: record.UnitShare,
		Facts: record.Facts{Count: l.Reconnects, Total: l.Done}}
	if float64(l.Reconnects) >= keepsNone*float64(l.Done) {
		return remark(in("none kept", f))
	}
	perItem := max(connectionNs, l.Service.CPUPerRequestNs) + l.TLSTime.MeanNs
	elapsed := float64(l.Reconnects) / float64(max(l.WindowNs, 1)) *
		(perItem/max(r.Limits.CPUs, 1) + l.ConnectTime.MeanNs/float64(max(l.Connections, 1)))
	return bounded(f, taken(l, elapsed, float64(l.Reconnects)/float64(l.Done)))
}

const (
	// datagramBytes is the least that every path of QUIC carries (RFC 9000, section 14).
	datagramBytes = 1200
	// windowLeast is what a connection may always have under way, in datagrams (RFC 9002, section
	// 7.2).
	windowLeast = 2
)

// datagrams bounds what was lost in front of a socket that nobody read for a while: neither the
// network nor the service has dropped it, and it is sent again when it is missed, which took no
// longer than the longest request. One carries parts of one connection's requests, of all that are
// under way there at most; without those a percentile would be one of a lower rank. What is lost
// makes its connection send less, too. That goes unnoticed where an answer fits into what it may
// still have under way: 1.22/√p datagrams on average, of which a share p is lost (Mathis et al.).
// Where it does not, how much faster the connection would have been is unknown.
func datagrams(_ *record.Record, l *load) *record.Finding {
	n := float64(l.Generator.DatagramsLost)
	if n <= 0 || l.Answered == 0 {
		return nil
	}
	f := record.Finding{Facts: record.Facts{Count: l.Generator.DatagramsLost, Total: l.Answered}}
	streams := float64(max(l.Streams, 1))
	sent := max(float64(l.BytesIn)/datagramBytes, float64(l.Answered)/streams)
	under := sent / float64(l.Answered) * streams
	if window := max(windowLeast, math.Sqrt(1.5*sent/n)); under > window {
		f.Case, f.Unit, f.Side = "under way", record.UnitCount, record.Above
		f.Value, f.Limit, f.Facts.Observed = under, window, under/streams
		return suspect(f)
	}
	elapsed := n * float64(l.ResponseTime.MaxNs) /
		(float64(max(l.Connections, 1)) * float64(max(l.WindowNs, 1)))
	elapsed = min(elapsed, 0.9)
	elapsed /= 1 - elapsed
	times, part := l.times(), n*streams/float64(l.Answered)
	return bounded(f, moves(l.Load, elapsed, func(q float64) float64 {
		amount := times.below(q, part)
		if l.Model == record.Closed {
			amount = max(amount, elapsed)
		}
		return amount
	}))
}
