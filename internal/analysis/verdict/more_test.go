package verdict

import (
	"math"
	"testing"

	"prony.example/record"
)

// TestWithMore checks what more connections would have saved: of an open load of 500/s with 64
// connections, if a closed load with as many reached 1,000/s with a share of the processor time.
func TestWithMore(t *testing.T) {
	check := func(want float64, change func(open, closed *record.Load)) {
		t.Helper()
		r := &record.Record{Loads: []record.Load{
			{Model: record.Open, Connections: 64, RatePerS: 500, ThroughputPerS: 500},
			{Model: record.Closed, Connections: 64, ThroughputPerS: 1000}}}
		r.Loads[1].Service.CPUShare = 1
		change(&r.Loads[0], &r.Loads[1])
		if got := withMore(r, &r.Loads[0]); !(math.Abs(got-want) <= 1e-12) {
			t.Errorf("of %+v: %v, want %v", r.Loads, got, want)
		}
	}
	const unknown = 1
	check(0, func(_, _ *record.Load) {})
	// 0.05/0.95 of its rate is left beside 0.5: 1 − 0.5/(1/0.95 − 0.5).
	check(2.0/21, func(_, c *record.Load) { c.Service.CPUShare = 0.95 })
	check(unknown, func(_, c *record.Load) { c.Service.CPUShare = 0.949 })
	check(0, func(_, c *record.Load) { c.Service.CPUShare = 1.1 }) // measured a little later
	check(unknown, func(_, c *record.Load) { c.Connections = 65 })
	check(0, func(_, c *record.Load) { c.Connections, c.Streams = 16, 4 })
	check(unknown, func(_, c *record.Load) { c.Connections, c.Streams = 16, 5 })
	check(0, func(o, c *record.Load) { o.Streams, c.Streams = 2, 2 })
	check(unknown, func(_, c *record.Load) { c.Model = record.Open })
	check(unknown, func(_, c *record.Load) { c.Users = "64" })
	check(unknown, func(o, _ *record.Load) { o.RatePerS = 1000 })
	check(unknown, func(o, c *record.Load) { o.RatePerS, c.ThroughputPerS = 0, 0 })
	check(unknown, func(_, c *record.Load) { c.ThroughputPerS = -1 })
}
