package verdict

import (
	"cmp"
	"math"
	"slices"

	"prony.example/record"
)

const (
	sumsMax       = 0.01           // of the responses; a third-party tool's counts may differ
	littleMax     = 0.05           // suspect above
	starvingMax   = 0.05           // of the requests under way
	littleWrong   = 0.20           // invalid above
	littleAnswers = 100            // fewer give no reliable mean
	errorsMax     = 0.001          // of the requests; invalid above
	censoredMax   = 0.01           // of the requests; invalid above
	reconnectsMax = 0.01           // of the requests
	keepsNone     = 0.99           // of the requests; a window's last requests need no reconnect
	rangeNs       = int64(1) << 40 // package load's histograms end here
)

func answers(_ *record.Record, l *load) *record.Finding {
	if l.Done > 0 {
		return nil
	}
	return invalid(record.Finding{Limit: 1, Unit: record.UnitCount, Side: record.Below,
		Facts: record.Facts{Messages: said(l.Errors.Example)}})
}

// sums compares the histogram of response times with the counters. Prony updates its own together,
// so that a difference is a defect. Third-party tools invent samples or keep only the first
// million; some of them time failed requests and others do not.
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

// order skips values that a third-party tool does not report.
func order(_ *record.Record, l *load) *record.Finding {
	for _, d := range append(l.routes(), l.ResponseTime, l.ServiceTime, l.FirstByte, l.Lag,
		l.OwnLag, l.PunctualTime, l.ErrorTime, l.ConnectTime, l.TLSTime, l.FlowTime,
		l.Generator.Wakeup) {
		v := []int64{d.MinNs, d.P50Ns, d.P90Ns, d.P99Ns, d.P999Ns, d.MaxNs}
		low, high, owner := d.MinNs, d.MaxNs, "Prony"
		if l.Driver != "" { // the tool does not report a value of 0
			v = slices.DeleteFunc(v, func(ns int64) bool { return ns == 0 })
			owner = l.Driver
			if d.MeanNs == 0 {
				low = 0
			}
			if d.MaxNs == 0 {
				high = math.MaxInt64
			}
		} else if low < 1 && d.Count > 0 {
			v = append(v, 0) // every response takes some time
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
		Messages: said(l.Errors.Example), Party: l.Errors.Party}
	if float64(n) > errorsMax*float64(l.Answered+n) {
		return invalid(in("many", with(facts, share(part, errorsMax))))
	}
	times := l.times()
	moves := moves(l.Load, part, func(q float64) float64 {
		return max(times.below(q, part), times.beyond(q, part))
	})
	return orCause(with(facts, share(part, 0)), moves)
}

// retried reports a service that closes connections while requests are on their way to it. Prony
// sends each such request again on a new connection, and its time includes both attempts, so that
// every number stays valid.
func retried(_ *record.Record, l *load) *record.Finding {
	all := l.Answered + l.Errors.Total()
	if float64(l.Retried) <= errorsMax*float64(all) {
		return nil
	}
	return remark(with(record.Facts{Count: l.Retried, Total: all},
		share(float64(l.Retried)/float64(all), errorsMax)))
}

// early reports a service that responds before it has received the requests. Their times do not
// include the upload.
func early(_ *record.Record, l *load) *record.Finding {
	all := l.Answered + l.Errors.Total()
	if float64(l.Early) <= errorsMax*float64(all) {
		return nil
	}
	return remark(with(record.Facts{Count: l.Early, Total: all},
		share(float64(l.Early)/float64(all), errorsMax)))
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

// little compares the requests under way with rate × mean time over the window (Little's law). The
// record only bounds the times of two kinds of requests, so the law gives a range. Failed requests
// count from the moment at which they were due, which may include a wait for a connection. Each
// censored request occupies a connection, or one of its streams, for at most the whole window.
// Timeouts have a service time like good responses. Pauses of users count neither as requests under
// way nor as time. CarriedInMean and CarriedOutMean account for requests that cross the window's
// edges, for example after a pause of the service. A generator that does not report them has edges
// that cancel out unless the rate changes: then they differ by the requests that came or went, for
// as long as one request takes.
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

// starving finds connections of a closed load that wait through the window while others receive
// responses. Their requests were due before the window, so that the percentiles lack them. In a
// steady state, requests from before the window are under way in it for as long as the window's own
// requests are after it. Each connection that starves adds at most one window to the difference.
func starving(_ *record.Record, l *load) *record.Finding {
	surplus := l.CarriedInMean - l.CarriedOutMean
	if l.Model != record.Closed || l.InFlightMean <= 0 || surplus <= starvingMax*l.InFlightMean {
		return nil
	}
	missing := math.Ceil(surplus)
	part := missing / (missing + float64(l.ResponseTime.Count))
	times := l.times()
	f := with(record.Facts{Observed: l.CarriedInMean, Expected: l.CarriedOutMean},
		share(surplus/l.InFlightMean, starvingMax))
	return orCause(f, moves(l.Load, 0, func(q float64) float64 { return times.beyond(q, part) }))
}

// said returns the message of a service or a tool as a list, or nil if it is empty.
func said(words string) []string {
	if words == "" {
		return nil
	}
	return []string{words}
}

// clipped finds times that exceed the range of Prony's histograms. Histograms of third-party tools
// have other ranges.
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

// connectionNs is the assumed minimum of a service's processor time for a new TCP connection.
// Measured by prony load with --churn 1 and --churn 0 on one core: a server in Go spent 58 µs on
// each connection at 17 µs a request, one in JavaScript 84 µs at 17 µs, and one in Python 124 µs at
// 390 µs. Services with slow requests also have slow connections.
const connectionNs = 100e3

// reconnects bounds the effect of connections that the service closed, as many servers do after a
// hundred requests. Each new connection took time of the service, including TLS, and was unusable
// until it was established. The first request of each connection also waits until the service
// accepts it. If a service keeps no connection, it treats all clients like this, and its numbers
// describe a request with its connection.
func reconnects(r *record.Record, l *load) *record.Finding {
	if l.Done == 0 || float64(l.Reconnects) <= reconnectsMax*float64(l.Done) {
		return nil
	}
	f := record.Finding{Value: float64(l.Reconnects) / float64(l.Done), Unit: record.UnitShare,
		Facts: record.Facts{Count: l.Reconnects, Total: l.Done}}
	givenUp := 2*(l.Early+l.Errors.Unsolicited) > l.Reconnects
	if givenUp {
		f = in("given up", f)
	}
	if float64(l.Reconnects) >= keepsNone*float64(l.Done) {
		if !givenUp {
			f = in("none kept", f)
		}
		return remark(f)
	}
	perItem := max(connectionNs, l.Service.CPUPerRequestNs) + l.TLSTime.MeanNs
	elapsed := float64(l.Reconnects) / float64(max(l.WindowNs, 1)) *
		(perItem/cmp.Or(r.Limits.CPUs, 1) + l.ConnectTime.MeanNs/float64(max(l.Connections, 1)))
	return bounded(f, taken(l, elapsed, float64(l.Reconnects)/float64(l.Done)))
}

const (
	// datagramBytes is the minimum datagram size that every QUIC path carries (RFC 9000, section
	// 14).
	datagramBytes = 1200
	// windowLeast is the minimum congestion window of a connection, in datagrams (RFC 9002, section
	// 7.2).
	windowLeast = 2
)

// datagrams bounds the effect of datagrams that the kernel dropped in front of a socket that nobody
// read for a while. Neither the network nor the service lost them, and the sender sends them again
// after at most the time of the longest request. A datagram carries parts of one connection's
// requests, at most of all that are under way there; without them a percentile would have a lower
// rank. A loss also makes its connection send less. This has no effect if a response fits into the
// congestion window, 1.22/√p datagrams on average at a lost share p (Mathis et al.). If a response
// does not fit, the speed of the connection without losses is unknown.
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
