package freeze

import (
	"time"

	"prony.example/record"
)

// A dozing target runs for dozeRun after each dozeStop. Supervisors take a worker for dead that
// they have not heard of for a time: Gunicorn after 30 s, Uvicorn after 5 s, by clocks that run on.
const (
	dozeStop = 2 * time.Second
	dozeRun  = 100 * time.Millisecond
)

// Doze stops the target as Freeze does, for long: until Freeze, Thaw or Close is called, it runs
// for 100 ms every 2 s, so that its processes can show each other that they live. Use it where
// seconds pass in which nothing of the target is measured, such as the warm-up of another one.
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

// doze ends when it is woken, or when the target has ended, which the next call reports.
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

// endDoze returns when no doze is under way. The target may be stopped then or run.
func (f *Freezer) endDoze() {
	f.dozing.Lock()
	defer f.dozing.Unlock()
	if f.wake != nil {
		close(f.wake)
		<-f.awake
		f.wake = nil
	}
}
