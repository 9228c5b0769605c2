// Package clock is the only package that reads time. Durations come from the monotonic clock, so
// that a step of the wall clock (NTP, an operator) cannot change a measurement. The wall clock only
// dates records and names runs. Inside a testing/synctest bubble both follow the bubble's time.
package clock

import (
	"context"
	"math"
	"sync/atomic"
	"time"
)

// nanoseconds converts ticks to ns. It multiplies in two parts, because the product ticks*second
// would overflow after hours.
func nanoseconds(ticks, perSecond int64) int64 {
	const second = int64(time.Second)
	return ticks/perSecond*second + ticks%perSecond*second/perSecond
}

// Every returns an iterator for loops that run at once and then at every interval d until ctx ends.
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

// Wall returns the date and time in UTC. It is for records and names, never for durations.
func Wall() time.Time { return time.Now().UTC().Add(time.Duration(ahead.Load())) }

// ahead is the offset that tests have added to the wall clock, in ns.
var ahead atomic.Int64

// SetWall shifts the wall clock against the machine's, as NTP or an operator does. Only tests use
// it, because the kernel has no namespaces of the wall clock.
func SetWall(share time.Duration) { ahead.Store(int64(share)) }

// Offset is the difference between the clocks of another process or machine and this one's, in ns;
// positive if the others are ahead.
type Offset struct {
	MonoNs, WallNs int64
	ErrorNs        int64 // half of the round trip: the clocks were read somewhere in it
}

// Against requests another process's clocks as often as times says and returns the Offset by the
// answer with the shortest round trip (RFC 5905, section 8). fetch returns the other's clocks in
// ns, and the value of Mono when the answer arrived.
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
