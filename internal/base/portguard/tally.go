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
	count  Refused
	timer  *time.Timer // runs until the next report; nil if nothing is to be reported
	before bool        // there was a report
	over   bool        // no more reports
}

// add counts, and plans a report unless one is planned.
func (t *tally) add(more Refused) {
	if t.report == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count.Denied += more.Denied
	t.count.Closed += more.Closed
	if t.timer != nil || t.over {
		return
	}
	wait := firstReport
	if t.before {
		wait = laterReport
	}
	t.timer, t.before = time.AfterFunc(wait, t.flush), true
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
	if count.Total() > 0 {
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
