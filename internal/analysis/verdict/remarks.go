package verdict

import (
	"prony.example/record"
)

// The kernel puts an acknowledgement off for 40 ms (TCP_DELACK_MIN), and for a tick more, of which
// there are at least 100 a second. Its timer is as good for all.
const (
	ackLeastNs  = 39e6
	ackMostNs   = 51e6
	ackSpreadNs = 10e6 // of nine tenths above the median
)

// delayed finds answers whose end waits for the kernel's timer: a service that sends an answer by
// two writes has the second held back until the first is acknowledged (Nagle's algorithm, RFC 896),
// and a client that has nothing to say puts that off (RFC 1122, section 4.2.3.2).
func delayed(_ *record.Record, l *load) *record.Finding {
	if l.Protocol == "HTTP/3" || l.FirstByte.Count == 0 {
		return nil
	}
	gap := l.ServiceTime.P50Ns - l.FirstByte.P50Ns
	spread := l.ServiceTime.P90Ns - l.ServiceTime.P50Ns
	if gap < ackLeastNs || gap > ackMostNs || spread > ackSpreadNs {
		return nil
	}
	return remark(record.Finding{Value: float64(gap), Unit: record.UnitNs})
}

const (
	unusedMax    = 0.5 // of its processor time
	unusedFrom   = 32  // connections; that fewer do not fill a service surprises nobody
	unusedOthers = 0.1 // of the machine's: who has more may have kept it from using its own
)

// unused finds services that a closed load does not fill: what it gets is then bound by what they
// wait for, a database, a lock or a timer, or by their threads, and more connections may get more.
func unused(r *record.Record, l *load) *record.Finding {
	used, othersShare := l.Service.CPUShare, l.Host.OtherCPUShare+l.Host.StealShare
	switch {
	case l.Model != record.Closed || l.Users != "" || l.Think != "" || l.Connections < unusedFrom:
		return nil
	case l.Driver != "": // whose own limits are not known
		return nil
	case l.Done == 0 || used <= 0 || used >= unusedMax || othersShare > unusedOthers:
		return nil
	case len(r.Limits.ServiceCores) == 0 || cores(r, l) != nil:
		return nil // the rest may be another's
	case generatorBusy(r, l) != nil || ceiling(r, l) != nil || delayed(r, l) != nil:
		return nil // and so it is known what it waits for
	}
	return remark(record.Finding{Value: used, Unit: record.UnitShare,
		Facts: record.Facts{Connections: l.Connections}})
}
