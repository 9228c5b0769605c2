package probe

import "testing"

func TestParseProcess(t *testing.T) {
	check := func(text string, want Process, ok bool) {
		t.Helper()
		if got, found := ParseProcess([]byte(text)); got != want || found != ok {
			t.Errorf("ParseProcess(%q) = %+v, %v, want %+v, %v", text, got, found, want, ok)
		}
	}
	// utime 7 and stime 5 are 12 ticks of 10 ms; its children's 100 and 200 don't count.
	const rest = " S 1 1 1 0 -1 0 1 2 3 4 7 5 100 200 20 0 9 0 55 1000 30 1"
	check("42 (name)"+rest, Process{"name", 120_000_000}, true)
	check("42 (a (b) c)"+rest, Process{"a (b) c", 120_000_000}, true)
	check("42 ()"+rest, Process{"", 120_000_000}, true)
	check("42 (name) S 1 1", Process{}, false)
	check("", Process{}, false)
	check("42 name)"+rest, Process{}, false)
}

func TestShares(t *testing.T) {
	check := func(a, b HostTicks, ownNs int64, steal, others float64) {
		t.Helper()
		gotSteal, gotOthers := Shares(a, b, ownNs)
		if gotSteal != steal || gotOthers != others {
			t.Errorf("Shares(%+v, %+v, %d) = %g, %g, want %g, %g", a, b, ownNs, gotSteal, gotOthers,
				steal, others)
		}
	}
	a, b := HostTicks{10, 5, 100}, HostTicks{60, 15, 300}
	// Of 200 ticks, 2 s, 10 were stolen and 50 busy; of these 0.5 s, 0.1 s were the trial's own.
	check(a, b, 100_000_000, 0.05, 0.2)
	check(a, b, 600_000_000, 0.05, 0) // ticks are coarser than the trial's clock
	check(a, b, -1, 0.05, -1)
	check(a, a, 0, -1, -1)
	check(a, HostTicks{-1, -1, -1}, 0, -1, -1)
}
