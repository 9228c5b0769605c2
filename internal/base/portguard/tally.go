package portguard

import (
	"sync"
	"time"
)

// The first report comes soon, because it may explain why a client was refused; further ones are at
// most one a minute, so that repeated attempts cannot fill a log.
const (
	firstReport = 2 * time.Second
	laterReport = time.Minute
)

// tally counts refused connections until the next report.
type tally struct {
	report func(Refused) // may be nil

	mu     sync.Mutex
	all    Refused
	count  Refused     // since the previous report
	timer  *time.Timer // runs until the next report; nil if nothing is to be reported
	before bool        // there was a report
	over   bool        // nothing is counted any more
}

// add counts, and plans a report unless one is planned.
func (t *tally) add(more Refused) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	for _, n := range []*Refused{&t.all, &t.count} {
		n.Denied += more.Denied
		n.Closed += more.Closed
	}
	if t.report == nil || t.timer != nil {
		return
	}
	wait := firstReport
	if t.before {
		wait = laterReport
	}
	t.timer, t.before = time.AfterFunc(wait, t.flush), true
}

// sum returns the number of all refused connections.
func (t *tally) sum() Refused {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all
}

// flush reports at once what was counted.
func (t *tally) flush() {
	t.mu.Lock()
	count := t.count
	t.count = Refused{}
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	t.mu.Unlock()
	if count.Total() > 0 && t.report != nil {
		t.report(count)
	}
}

// stop reports the last ones; what comes later is not reported.
func (t *tally) stop() {
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
	t.flush()
}
