package table

import (
	"testing"

	"prony.example/record"
)

// TestRoutePercentiles checks that p99 of a route is refused if more than 1 % of its requests were
// never answered. Requests that failed were answered otherwise.
func TestRoutePercentiles(t *testing.T) {
	check := func(sent, failed int64, refused bool) {
		t.Helper()
		l := &record.Load{ResponseTime: record.Dist{Count: 9999}}
		r := &record.Route{Sent: sent, Answered: 990, Failed: failed,
			ResponseTime: record.Dist{Count: 990, P50Ns: 1e6, P99Ns: 2e6}}
		p50, p99 := RoutePercentiles(l, r, 0.95)[0], RoutePercentiles(l, r, 0.95)[2]
		if p50.Refused() || p99.Refused() != refused {
			t.Errorf("%d sent, %d failed: p50 %+v, p99 %+v, want it refused: %v", sent, failed,
				p50, p99, refused)
		}
	}
	check(990, 0, false)
	check(1000, 0, false) // 10 of 1,000
	check(1001, 0, true)
	check(1001, 1, false)
	check(980, 5, false) // an interrupted count
}
