package freeze

import (
	"time"

	"prony.example/record"
)

// A dozing target runs for dozeRun after each dozeStop. Supervisors kill a worker that sends no
// heartbeat for some time: Gunicorn after 30 s, Uvicorn after 5 s, by clocks that keep running.
const (
	dozeStop = 2 * time.Second
	dozeRun  = 100 * time.Millisecond
)

// Doze stops the target as Freeze does, for a long time: until Freeze, Thaw or Close is called, the
// target runs for 100 ms every 2 s, so that its processes can exchange heartbeats. Use it if
// nothing of the target is measured for seconds, such as during the warm-up of another one.
func (f *Freezer) Doze() error {
	if err := f.Freeze(); err != nil || f.way == record.FreezeOff {
		return err
	}
	f.dozing.Lock()
	defer f.dozing.Unlock()
	if f.wake != nil { // another goroutine was faster
		return nil
	}
	f.wake, f.awake = make(chan struct{}), make(chan struct{})
	go f.doze(f.wake, f.awake)
	return nil
}

// doze returns when it is woken or the target has ended. The next call reports that end.
func (f *Freezer) doze(wake <-chan struct{}, awake chan<- struct{}) {
	defer close(awake)
	after := func(d time.Duration) (woken bool) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-wake:
			return true
		case <-timer.C:
			return false
		}
	}
	for {
		if after(dozeStop) || f.resume() != nil || after(dozeRun) || f.freeze() != nil {
			return
		}
	}
}

// endDoze ends a doze and returns when it has ended. The target may then be stopped or running.
func (f *Freezer) endDoze() {
	f.dozing.Lock()
	defer f.dozing.Unlock()
	if f.wake != nil {
		close(f.wake)
		<-f.awake
		f.wake = nil
	}
}
