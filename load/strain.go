package load

import (
	"prony.example/load/engine"
	"prony.example/record"
)

// strain bounds how long a service can have had too few requests because a load thread was still
// processing responses.
//
// A turn of the loop begins with the n responses that are ready, of the requests under way. The
// service has the others. For each response that the thread processes, it sends the next request.
// The next turn begins with all responses that the service has sent meanwhile. If these are m, and
// j requests were sent up to a moment of the turn, the service had at least under − n + j − m
// requests at that moment. So it had enough from the (n + m − under + enough)-th response on. This
// holds for any service and any delay of the thread.
type strain struct {
	enough   int64 // requests that occupy the service's cores, for each thread
	n, under int64 // of the last turn

	handled  int64 // responses in the window
	starving int64 // of those in the turns before: processed when the service may have had too few
}

// count counts a turn that begins with m responses.
func (s *strain) count(m int64) {
	s.handled += m
	if m >= engine.WaitMost { // more may be ready
		m = s.under
	}
	s.starving += min(max(s.n+m-s.under+s.enough, 0), s.n)
}

// effort returns the CPU time of the busiest load thread in the window of the last slice, without
// polling. Of a closed load, it also returns the part of that time, on average over all threads, in
// which the service may have had too few requests. This part does not include the time of a thread
// that does not run. It is -1 for engines that do not process all ready responses in a turn, or
// that hold requests.
func (l *Loader) effort() (cpuNs, starvedNs int64) {
	known := l.run.spec.Model == record.Closed && !l.run.spec.Describe.Spread
	for _, w := range l.run.workers {
		b := w.book
		used := max(b.cpuClose.minus(b.cpuOpen).cpuNs-b.spinNs, 0)
		cpuNs = max(cpuNs, used)
		starvedNs += used * b.strain.starving / max(b.strain.handled, 1) / int64(len(l.run.workers))
		known = known && !w.queues && w.delays == nil
	}
	if !known {
		starvedNs = -1
	}
	return cpuNs, starvedNs
}
