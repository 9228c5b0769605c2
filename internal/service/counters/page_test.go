package counters

import "testing"

// Open returns a nil interface with an error: a nil pointer in an interface would be closed at the
// end of a trial.
func TestWhatCannotBeOpenedIsNoCounter(t *testing.T) {
	for _, p := range []Place{{Metrics: "nowhere", Series: "asks_total"},
		{Metrics: "http://127.0.0.1:1/metrics", Series: "no name"}, {Postgres: "nowhere"}} {
		if c, err := Open(p); c != nil || err == nil {
			t.Errorf("%+v: counter %#v, error %v; want none, and an error", p, c, err)
		}
	}
}
