package verdict

import (
	"fmt"
	"math"

	"prony/internal/result"
)

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
func datagrams(_ *result.Record, l *load) *result.Finding {
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
		if l.Model == result.Closed {
			by = max(by, took)
		}
		return by
	}))
}
