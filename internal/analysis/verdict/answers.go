package verdict

import (
	"fmt"
	"math"
	"slices"
	"time"

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
	hint := "none came inside the window: raise measure, or read the service's log"
	if l.Errors.Example != "" {
		hint = "see the errors: " + l.Errors.Example
	}
	return invalid("no good answer", "at least 1", hint)
}

// sums holds the histogram of response times against the counters. Prony's own are booked together,
// so that a difference is a defect. Foreign tools invent samples, or keep the first million only;
// some time what failed and some do not.
func sums(_ *record.Record, l *load) *record.Finding {
	have, want := l.ResponseTime.Count, l.Answered+l.Errors.Timeout
	if l.Driver != "" {
		return foreignSums(l.Load)
	}
	observed := fmt.Sprintf("%d response times of %d answers and timeouts", have, want)
	if l.Censored < 0 {
		observed = fmt.Sprintf("%d more ends than requests", -l.Censored)
	} else if have == want {
		return nil
	}
	return invalid(observed, "as many", "this is a defect of Prony: please report it")
}

func foreignSums(l *record.Load) *record.Finding {
	have := max(l.ResponseTime.Count, l.ServiceTime.Count)
	least := (1 - sumsMax) * float64(l.Answered)
	most := (1 + sumsMax) * float64(l.Answered+l.Errors.Total())
	if have == 0 || float64(have) >= least && float64(have) <= most {
		return nil
	}
	return suspect(fmt.Sprintf("%d times of %d answers", have, l.Answered), percent(sumsMax),
		"the tool's percentiles are not those of all its requests")
}

// order leaves out what a foreign tool does not say.
func order(_ *record.Record, l *load) *record.Finding {
	for _, d := range append(l.routes(), l.ResponseTime, l.ServiceTime, l.FirstByte, l.Lag,
		l.OwnLag, l.PunctualTime, l.ErrorTime, l.ConnectTime, l.TLSTime, l.FlowTime,
		l.Generator.Wakeup) {
		v := []int64{d.MinNs, d.P50Ns, d.P90Ns, d.P99Ns, d.P999Ns, d.MaxNs}
		low, high, who := d.MinNs, d.MaxNs, "Prony"
		if l.Driver != "" { // what is 0 it does not say
			v = slices.DeleteFunc(v, func(ns int64) bool { return ns == 0 })
			who = l.Driver
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
			return invalid(fmt.Sprintf("%v ns, mean %.0f", v, d.MeanNs), "increasing",
				"this is a defect of "+who+": please report it")
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
	observed := fmt.Sprintf("%d of %d went wrong", n, l.Answered+n)
	if l.Errors.Example != "" {
		observed += " (" + l.Errors.Example + ")"
	}
	hint := "read the service's log"
	if 2*l.Errors.Closed > n {
		hint = "raise the service's limits on kept-alive connections (requests, idle time), or use " +
			"a method that may be repeated"
	}
	if float64(n) > errorsMax*float64(l.Answered+n) {
		return invalid(observed, percent(errorsMax), "an error is not an answer; "+hint)
	}
	share := float64(n) / float64(l.Answered+n)
	times := l.times()
	moves := moves(l.Load, share, func(q float64) float64 {
		return max(times.below(q, share), times.beyond(q, share))
	})
	return orCause(observed, hint, moves)
}

// retried names a service that closes connections while requests are on their way to it. Each such
// request went to a new connection; its time has both, so that no number is in doubt.
func retried(_ *record.Record, l *load) *record.Finding {
	all := l.Answered + l.Errors.Total()
	if float64(l.Retried) <= errorsMax*float64(all) {
		return nil
	}
	return remark(fmt.Sprintf("%d of %d requests were sent again", l.Retried, all),
		"the service closed kept-alive connections before it took these requests, or it failed "+
			"without an answer: compare with its keep-alive limits and its log")
}

func censored(_ *record.Record, l *load) *record.Finding {
	if l.Censored <= 0 || l.Scheduled == 0 {
		return nil
	}
	observed := fmt.Sprintf("%d of %d unanswered at the end", l.Censored, l.Scheduled)
	hint := "the tail is longer than it looks: raise drain, or lower the rate"
	if float64(l.Censored) > censoredMax*float64(l.Scheduled) {
		return invalid(observed, percent(censoredMax), hint)
	}
	share := float64(l.Censored) / float64(l.Scheduled)
	times := l.times()
	return orCause(observed, hint, moves(l.Load, 0, func(q float64) float64 {
		return times.beyond(q, share)
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
		l.CarriedMean - l.LeftMean
	most := least + l.ErrorTime.MeanNs*wrong/float64(l.WindowNs) +
		float64(min(max(l.Censored, 0), int64(l.Connections+l.Grown)*int64(max(l.Streams, 1))))
	edge := swell(l.Load) * l.ServiceTime.MeanNs / float64(l.WindowNs)
	want := min(max(l.InFlightMean, least-edge), most+edge)
	off := math.Abs(l.InFlightMean-want) / l.InFlightMean
	observed := fmt.Sprintf("%.2f under way, rate × time gives %.2f", l.InFlightMean, want)
	hint := "requests from before the window still wait: connections starve, or it is too short"
	switch {
	case off > littleWrong:
		return invalid(observed, percent(littleMax), hint)
	case off > littleMax:
		return suspect(observed, percent(littleMax), hint)
	}
	return nil
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
	limit := time.Duration(rangeNs).Round(time.Second)
	return suspect(fmt.Sprintf("at least one took %v or longer", limit), limit.String(),
		"longer times count as this one: set a timeout below it")
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
	observed := fmt.Sprintf("%d for %d requests", l.Reconnects, l.Done)
	if float64(l.Reconnects) >= keepsNone*float64(l.Done) {
		return remark(observed, "the service keeps no connection: each number is of a "+
			"request with one of its own")
	}
	each := max(connectionNs, l.Service.CPUPerRequestNs) + l.TLSTime.MeanNs
	share := float64(l.Reconnects) / float64(max(l.WindowNs, 1)) *
		(each/max(r.Limits.CPUs, 1) + l.ConnectTime.MeanNs/float64(max(l.Connections, 1)))
	return bounded(observed, "the service closes connections: this measures handshakes too",
		taken(l, share, float64(l.Reconnects)/float64(l.Done)))
}

func slow(_ *record.Record, l *load) *record.Finding {
	if l.Slow.Opened >= int64(l.Slow.Clients) {
		return nil
	}
	return suspect(fmt.Sprintf("%d of %d connected", l.Slow.Opened, l.Slow.Clients),
		fmt.Sprint(l.Slow.Clients), "raise the limit on open files of both sides, or ask for fewer")
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
// Where it does not, nobody can say how much faster the connection would have been.
func datagrams(_ *record.Record, l *load) *record.Finding {
	n := float64(l.Generator.DatagramsLost)
	if n <= 0 || l.Answered == 0 {
		return nil
	}
	observed := fmt.Sprintf("%d lost of %d answers", l.Generator.DatagramsLost, l.Answered)
	hint := "raise net.core.rmem_max for service and load, or give them cores of their own"
	streams := float64(max(l.Streams, 1))
	sent := max(float64(l.BytesIn)/datagramBytes, float64(l.Answered)/streams)
	under := sent / float64(l.Answered) * streams
	if window := max(windowLeast, math.Sqrt(1.5*sent/n)); under > window {
		return suspect(fmt.Sprintf("%s of %.0f datagrams", observed, under/streams),
			fmt.Sprintf("%.0f under way", window), hint)
	}
	took := n * float64(l.ResponseTime.MaxNs) /
		(float64(max(l.Connections, 1)) * float64(max(l.WindowNs, 1)))
	took = min(took, 0.9)
	took /= 1 - took
	times, share := l.times(), n*streams/float64(l.Answered)
	return bounded(observed, hint, moves(l.Load, took, func(q float64) float64 {
		by := times.below(q, share)
		if l.Model == record.Closed {
			by = max(by, took)
		}
		return by
	}))
}
