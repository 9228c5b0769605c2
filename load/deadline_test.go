package load

import "testing"

// TestDeadline checks when the loop must turn again: at the next tick, boundary or end, and with
// precise pacing before the next request, if a connection is free to send it.
func TestDeadline(t *testing.T) {
	check := func(name string, want int64, change func(*worker)) {
		t.Helper()
		w := hot(t, hello, 2, &later{})
		w.cfg.closeAt, w.cfg.endAt, w.book.boundary = 4000, 5000, 6000
		w.nextDue, w.spin, w.remaining = 3000, 100, -1
		change(w)
		if got := w.deadline(7000); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	check("due", 2900, func(*worker) {})
	check("tick", 2000, func(w *worker) { w.cfg.endAt = 2000 })
	check("boundary", 2000, func(w *worker) { w.book.boundary = 2000 })
	check("due after the window", 5000, func(w *worker) { w.nextDue = 4000 })
	check("none left", 5000, func(w *worker) { w.remaining = 0 })
	check("closed", 5000, func(w *worker) { w.arrivals = nil })
	check("no free connection", 5000, func(w *worker) { w.freeN = 0 })
	check("user", 1900, func(w *worker) { w.timers = timers{{atNs: 2000}} })
	// Without a free connection, the next one opens when it may, and when a request is due.
	grown := func(w *worker) { w.freeN, w.used, w.conns = 0, 2, append(w.conns, conn{}) }
	check("growth", 3000, grown)
	check("growth after a pause", 3500, func(w *worker) { grown(w); w.growAt = 3500 })
	check("growth under way", 5000, func(w *worker) { grown(w); w.coming = 2 })
}
