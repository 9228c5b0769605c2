package trial

import "testing"

// A side warms up until both have seen enough, and not for one that has gone.
func TestWarmUntilBoth(t *testing.T) {
	p := &pair{meeting: newMeeting()}
	for i, step := range []struct {
		ended int
		want  bool
	}{{0, false}, {1, false}, {0, false}, {1, true}, {0, true}} { // two ends make it
		if got := p.warm(step.ended, 2); got != step.want {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}
	p = &pair{meeting: newMeeting()}
	if p.warm(1, 2) {
		t.Error("one alone has not waited")
	}
	p.leave()
	if !p.warm(0, 2) {
		t.Error("it waits for one that has gone")
	}
}
