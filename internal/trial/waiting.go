package trial

import (
	"fmt"
	"sync"
	"time"
)

// A service that is not ready is reported after a time within which most are, then at intervals.
const (
	lateReady  = 15 * time.Second
	stillEvery = time.Minute
)

// reportWait reports that the service is not ready yet, with what is waited for and how long, until
// stop is called. It returns stop.
func (f *life) reportWait(bound time.Duration) (stop func()) {
	path := f.trial.Subject.Service.ReadyIn(f.trial.Scene.Protocol)
	until := fmt.Sprintf("until GET %s on %s returns status 200", path, f.addr)
	if path == "" {
		until = fmt.Sprintf("until it listens on %s", f.addr)
	}
	done := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		tick := time.NewTimer(lateReady)
		defer tick.Stop()
		for passed := lateReady; passed < bound; passed += stillEvery {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			f.lab.tell(Event{Trial: f.trial.ID, Step: f.step, Remark: fmt.Sprintf("%s: %s is not "+
				"ready after %v; waiting at most %v %s; its log is %s; Ctrl-C ends the run",
				f.trial.ID, f.trial.Target, passed, bound, until, f.proc.LogFile())})
			tick.Reset(stillEvery)
		}
	})
	return func() { close(done); waiting.Wait() }
}
