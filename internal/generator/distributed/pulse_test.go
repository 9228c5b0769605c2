package distributed

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/base/clock"
)

// TestStandsStill checks that silence counts only while the lab runs: messages that arrive during
// its stall are in its socket afterwards.
func TestStandsStill(t *testing.T) {
	for name, row := range map[string]struct {
		wakes time.Duration // the lab stalls until then
		after time.Duration // until the generator speaks
		heard bool
		still time.Duration
	}{
		"awake": {after: 6 * time.Second},
		"still": {wakes: 5 * time.Second, after: 6 * time.Second, heard: true,
			still: 5 * time.Second},
		"spoke in time":  {after: 4 * time.Second, heard: true},
		"silent as well": {wakes: 5 * time.Second, after: time.Minute, still: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []time.Duration
				own := &pulse{last: clock.Mono(), report: func(_, ns int64) {
					told = append(told, time.Duration(ns))
				}}
				time.AfterFunc(row.wakes, func() { own.beat(t.Context()) })
				a, b := net.Pipe()
				defer a.Close() //nolint:errcheck // a pipe
				speaks := time.AfterFunc(row.after, func() { _ = (&line{Conn: b}).send(word, nil) })
				defer speaks.Stop()
				_, _, err := (&line{Conn: a, ownPulse: own}).hear(5*time.Second, word)
				if (err == nil) != row.heard || err != nil && lost(err) != "stopped responding" {
					t.Errorf("heard: %v", err)
				}
				if got := time.Duration(own.stillNs()); got != row.still ||
					(row.still > 0) != (len(told) > 0) {
					t.Errorf("it stood still for %v, told of %v; want %v", got, told, row.still)
				}
			})
		})
	}
}
