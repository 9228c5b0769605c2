package progress

import (
	"testing"
	"time"
)

// TestGrain checks the length of points: a 60th of the load, but at least the redraw interval and
// at most a second.
func TestGrain(t *testing.T) {
	check := func(c Config, want time.Duration) {
		t.Helper()
		if got := grainOf(c); got != want {
			t.Errorf("%+v: %v, want %v", c, got, want)
		}
	}
	check(Config{Kind: Page, Window: 60 * time.Second}, time.Second)
	check(Config{Kind: Page, Window: 59 * time.Second, Lead: time.Second}, time.Second)
	check(Config{Kind: Page, Window: time.Hour}, time.Second)
	check(Config{Kind: Page, Window: 30 * time.Second}, 500*time.Millisecond)
	check(Config{Kind: Page, Window: time.Second}, redrawEvery)
	check(Config{Kind: Page, Window: time.Hour, Requests: 1}, redrawEvery)
	check(Config{Kind: Plain, Window: time.Second, Requests: 1}, time.Second)
	check(Config{Kind: JSON, Window: time.Second}, time.Second)
}
