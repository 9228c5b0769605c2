package clock

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestAgainst checks that the exchange with the shortest round trip counts, with the other's clocks
// read in its middle, and that an error ends it.
func TestAgainst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ahead, wall = int64(time.Hour), int64(-time.Minute)
		trips := []time.Duration{10 * time.Millisecond, 2 * time.Millisecond, 6 * time.Millisecond}
		n := 0
		ask := func() (mono, date, heard int64, err error) {
			if n == len(trips) {
				return 0, 0, 0, errors.New("gone")
			}
			time.Sleep(trips[n] / 2)
			mono, date = Mono()+ahead, Wall().UnixNano()+wall
			time.Sleep(trips[n] / 2)
			n++
			heard = Mono()
			time.Sleep(time.Second) // reading it is not part of the round trip
			return mono, date, heard, nil
		}
		got, err := Against(len(trips), ask)
		if want := (Offset{ahead, wall, int64(time.Millisecond)}); err != nil || got != want {
			t.Errorf("%+v, want %+v, error %v", got, want, err)
		}
		if _, err := Against(1, ask); err == nil || err.Error() != "gone" {
			t.Errorf("error %v", err)
		}
	})
}
