package spanstore

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"prony.example/internal/telemetry"
	"prony.example/record"
)

const (
	// maxWindows limits the windows of a trial, far above the loads of any suite.
	maxWindows = 1000
	// settleNs is how long a moment waits for marks that determine its window. A mark is sent at
	// once and arrives before most spans, whose senders batch them for seconds.
	settleNs = int64(10e9)
	// maxMoments limits the waiting moments (2 MB); beyond it the earlier half is decided at once.
	maxMoments = 1 << 17
)

// Windows counts moments (a span's start, a log record's time) by window of a trial. A window
// includes its opening and excludes its closing. Moments and marks may arrive in any order, because
// a moment is decided only when no mark can change its window any more.
type Windows struct {
	list   []window
	told   map[string]record.WindowTelemetry
	recent []moment
}

type window struct {
	name          string
	openNs, endNs int64 // endNs: math.MaxInt64 while it is open
}

type moment struct {
	ns  int64
	add record.WindowTelemetry
}

// Mark opens or closes a window. It ignores marks of other kinds.
func (w *Windows) Mark(m telemetry.Mark) error {
	i := slices.IndexFunc(w.list, func(v window) bool {
		return v.name == m.Name && v.endNs == math.MaxInt64
	})
	switch {
	case m.Kind == telemetry.Open && i >= 0:
		return fmt.Errorf("open window %s of %s: the window is already open", m.Name, m.Trial)
	case m.Kind == telemetry.Open && len(w.list) >= maxWindows:
		return fmt.Errorf("open window %s of %s: the trial already has the maximum of %d windows",
			m.Name, m.Trial, maxWindows)
	case m.Kind == telemetry.Open:
		w.list = append(w.list, window{m.Name, m.WallNs, math.MaxInt64})
	case m.Kind == telemetry.Close && i < 0:
		return fmt.Errorf("close window %s of %s: the window is not open", m.Name, m.Trial)
	case m.Kind == telemetry.Close:
		w.list[i].endNs = m.WallNs
	}
	return nil
}

// At returns the name of the window that contains a moment, by the marks so far; empty: none.
func (w *Windows) At(ns int64) string {
	for _, v := range slices.Backward(w.list) {
		if v.openNs <= ns && ns < v.endNs {
			return v.name
		}
	}
	return ""
}

// Add counts an event at ns; nowNs is the present. Both are Unix times.
func (w *Windows) Add(ns, nowNs int64, add record.WindowTelemetry) {
	if ns < nowNs-settleNs {
		w.settle(moment{ns, add})
		return
	}
	if len(w.recent) >= maxMoments {
		w.decide(nowNs)
	}
	w.recent = append(w.recent, moment{ns, add})
}

// decide settles all moments that are old enough, and at least half.
func (w *Windows) decide(nowNs int64) {
	slices.SortFunc(w.recent, func(a, b moment) int { return cmp.Compare(a.ns, b.ns) })
	n, _ := slices.BinarySearchFunc(w.recent, nowNs-settleNs, func(m moment, ns int64) int {
		return cmp.Compare(m.ns, ns)
	})
	n = max(n, len(w.recent)/2)
	for _, m := range w.recent[:n] {
		w.settle(m)
	}
	w.recent = w.recent[:copy(w.recent, w.recent[n:])]
}

func (w *Windows) settle(m moment) {
	name := w.At(m.ns)
	if name == "" {
		return
	}
	if w.told == nil {
		w.told = map[string]record.WindowTelemetry{}
	}
	w.told[name] = sum(w.told[name], m.add)
}

func sum(a, b record.WindowTelemetry) record.WindowTelemetry {
	return record.WindowTelemetry{Spans: a.Spans + b.Spans, ErrorSpans: a.ErrorSpans + b.ErrorSpans,
		Logs: a.Logs + b.Logs}
}

// End closes windows that are open at nowNs, decides the remaining moments, and returns the counts
// of all windows, also of empty ones.
func (w *Windows) End(nowNs int64) map[string]record.WindowTelemetry {
	for i := range w.list {
		w.list[i].endNs = min(w.list[i].endNs, max(nowNs, w.list[i].openNs))
	}
	for _, m := range w.recent {
		w.settle(m)
	}
	w.recent = nil
	out := map[string]record.WindowTelemetry{}
	for _, v := range w.list {
		out[v.name] = w.told[v.name]
	}
	return out
}
