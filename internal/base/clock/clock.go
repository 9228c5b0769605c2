// Package clock is the only place that reads time. Durations come from the monotonic clock, so a
// step of the wall clock (NTP, an operator) cannot enter a measurement; the wall clock only dates
// records and names runs. Inside a testing/synctest bubble both follow the bubble's time.
package clock

import (
	"context"
	"math"
	"sync/atomic"
	"time"
)

// nanoseconds is how long so many ticks are of which there are perSecond, without the overflow that
// a product of the two would come to after hours.
func nanoseconds(ticks, perSecond int64) int64 {
	const second = int64(time.Second)
	return ticks/perSecond*second + ticks%perSecond*second/perSecond
}

// Every is for loops whose body runs at once, and then every so often until the context ends.
func Every(ctx context.Context, d time.Duration) func(yield func() bool) {
	return func(yield func() bool) {
		t := time.NewTicker(d)
		defer t.Stop()
		for yield() {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
		}
	}
}

// Wall returns the date and time, UTC, for records and names, never for durations.
func Wall() time.Time { return time.Now().UTC().Add(time.Duration(ahead.Load())) }

// ahead is how far tests have set the wall clock, in ns.
var ahead atomic.Int64

// SetWall puts the wall clock ahead of the machine's, or behind it, as NTP or an operator does. It
// is for tests alone: no namespace of the kernel has a wall clock of its own.
func SetWall(share time.Duration) { ahead.Store(int64(share)) }

// Offset is how far another process's clocks, or another machine's, are ahead of this one's, in ns.
type Offset struct {
	MonoNs, WallNs int64
	ErrorNs        int64 // half of the round trip: wherever in it the clocks were read
}

// Against asks for another's clocks so many times. Of the answers the quickest counts (RFC 5905,
// section 8). Ask says what they showed, and when, by Mono, that was heard.
func Against(times int, fetch func() (mono, wall, heard int64, err error)) (o Offset, err error) {
	o.ErrorNs = math.MaxInt64
	for range times {
		before, date := Mono(), Wall().UnixNano()
		mono, wall, heard, err := fetch()
		if err != nil {
			return Offset{}, err
		}
		if half := (heard - before + 1) / 2; half < o.ErrorNs {
			o = Offset{mono - before - half, wall - date - half, half}
		}
	}
	return o, nil
}
