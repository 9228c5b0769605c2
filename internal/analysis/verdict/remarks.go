package verdict

import (
	"prony.example/record"
)

// The kernel delays an acknowledgment by 40 ms (TCP_DELACK_MIN) plus up to one tick, which is at
// most 10 ms. The timer is equally precise for all connections.
const (
	ackLeastNs  = 39e6
	ackMostNs   = 51e6
	ackSpreadNs = 10e6 // P90 above the median
)

// delayed finds responses whose end waits for the kernel's timer: if a service sends a response in
// two writes, the kernel holds the second back until the first is acknowledged (Nagle's algorithm,
// RFC 896), and a client without data to send delays its acknowledgment (RFC 1122, section
// 4.2.3.2).
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
	unusedMax    = 0.5 // of the service's processor time
	unusedFrom   = 32  // connections; fewer need not fill a service
	unusedOthers = 0.1 // of the machine's; others may have kept the service from using its time
)

// unused finds services that a closed load does not fill. Their throughput depends on waits for a
// database, a lock or a timer, or on their threads, and may grow with more connections.
func unused(r *record.Record, l *load) *record.Finding {
	used, othersShare := l.Service.CPUShare, max(l.Host.OtherCPUShare, 0)+max(l.Host.StealShare, 0)
	switch {
	case l.Model != record.Closed || l.Users != "" || l.Think != "" || l.Connections < unusedFrom:
		return nil
	case l.Network != nil: // its connections wait for the network
		return nil
	case l.Driver != "": // a third-party tool's own limits are unknown
		return nil
	case l.Done == 0 || used <= 0 || used >= unusedMax || othersShare > unusedOthers:
		return nil
	case len(r.Limits.ServiceCores) == 0 || cores(r, l) != nil:
		return nil // something else may use the rest
	case generatorBusy(r, l) != nil || ceiling(r, l) != nil || delayed(r, l) != nil:
		return nil // that rule explains the wait
	}
	return remark(record.Finding{Value: used, Unit: record.UnitShare,
		Facts: record.Facts{Connections: l.Connections}})
}
