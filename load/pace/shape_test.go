package pace

import (
	"math"
	"reflect"
	"testing"
)

func TestAt(t *testing.T) {
	check := func(text string, atS, want float64) {
		t.Helper()
		if got := parsed(t, text).At(int64(atS * 1e9)); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %g at %g s, want %g", text, got, atS, want)
		}
	}
	check("7", 0, 7)
	check("7", 1e9, 7)
	ramp := "ramp 100..200 in 10s"
	check(ramp, -1, 100)
	check(ramp, 0, 100)
	check(ramp, 2.5, 125)
	check(ramp, 10, 200)
	check(ramp, 1000, 200)
	check("1 for 1s, 2 for 1s", 0.999, 1)
	check("1 for 1s, 2 for 1s", 1, 2) // the later piece counts
	check("1 for 1s, 2 for 1s", 9, 2)
	check("repeat 1 for 1s, ramp 2..4 in 1s", 10, 1)
	check("repeat 1 for 1s, ramp 2..4 in 1s", 11.5, 3)
	check("sine 1000..5000 every 60s", 0, 1000)
	check("sine 1000..5000 every 60s", 15, 3000)
	check("sine 1000..5000 every 60s", 30, 5000)
	check("sine 1000..5000 every 60s", 75, 3000)
}

// The lines that approximate a sine stay within 0.015 % of the range of the curve, as their comment
// says, and come near that bound, so it is not loose.
func TestSineIsNearTheCurve(t *testing.T) {
	const lo, hi, period = 1000.0, 5000.0, 60_000_000_001 // 128 does not divide it
	p := Profile{Pieces: sine(lo, hi, period), Cycles: true}
	worst := 0.0
	for ns := int64(0); ns < period; ns += 9_999_991 {
		true := (lo+hi)/2 - (hi-lo)/2*math.Cos(2*math.Pi*float64(ns)/period)
		worst = max(worst, math.Abs(p.At(ns)-true)/(hi-lo))
	}
	if worst > 0.000151 || worst < 0.00014 {
		t.Errorf("off the curve by %g of the range", worst)
	}
	if p.Duration() != period {
		t.Errorf("the period is %d, want %d", p.Duration(), int64(period))
	}
	// Rounded cosines are the same on every processor only if none is near a tie.
	for i := range sinePieces {
		scaled := math.Cos(2*math.Pi*float64(i)/sinePieces) * 1e9
		if tie := math.Abs(scaled - math.Floor(scaled) - 0.5); tie < 1e-4 {
			t.Errorf("cosine %d is within %g of a tie", i, tie)
		}
	}
}

func TestMean(t *testing.T) {
	check := func(text string, fromS, toS, want float64) {
		t.Helper()
		got := parsed(t, text).Mean(int64(fromS*1e9), int64(toS*1e9))
		if math.Abs(got-want) > 1e-12*want {
			t.Errorf("%s: mean %v from %g to %g s, want %v", text, got, fromS, toS, want)
		}
	}
	check("7", 3, 5, 7)
	check("7", 3, 3, 7) // of an empty range: the value there
	check("ramp 0..100 in 10s", 0, 10, 50)
	check("ramp 0..100 in 10s", 2, 4, 30)
	check("ramp 0..100 in 10s", 5, 15, (75*5+100*5)/10.)
	check("1 for 1s, 5 for 1s, 9", 0.5, 2.5, (0.5+5+4.5)/2)
	saw := "repeat ramp 0..4 in 2s, 10 for 1s" // 14 a cycle of 3 s
	check(saw, 0, 3, 14./3)
	check(saw, 3, 300, 14./3)
	check(saw, 1, 2, 3)
	check(saw, 4, 5, 3)
	check(saw, 2, 4, (10+1)/2.)            // over the end of a cycle
	check(saw, 2, 7, (10+14+1)/5.)         // and a whole one between
	check(saw, 3e6+2, 3e6+7, (10+14+1)/5.) // after a million of them
	check("sine 1000..5000 every 60s", 0, 60, 3000)
	check("sine 1000..5000 every 60s", 15, 75, 3000)
}

func TestMaxScaleDuration(t *testing.T) {
	check := func(text string, most float64, durationNs int64, flat bool) {
		t.Helper()
		p := parsed(t, text)
		if p.Max() != most || p.Duration() != durationNs || p.IsFlat() != flat {
			t.Errorf("%s: max %g, duration %d, flat %v; want %g, %d, %v", text, p.Max(),
				p.Duration(), p.IsFlat(), most, durationNs, flat)
		}
		before := p.String()
		twice := p.Scale(2)
		if twice.Max() != 2*most || twice.At(7) != 2*p.At(7) || twice.Duration() != durationNs {
			t.Errorf("%s doubled is %s", text, twice)
		}
		if p.String() != before {
			t.Errorf("%s became %s by scaling a copy", before, p)
		}
	}
	check("7", 7, 0, true)
	check("7 for 1s, 7", 7, 1e9, true)
	check("7 for 1s, 8", 8, 1e9, false)
	check("ramp 9..1 in 2s", 9, 2e9, false)
	check("ramp 1..9 in 2s, 3 for 1s", 9, 3e9, false)
	check("sine 1..9 every 2s", 9, 2e9, false)
	if !reflect.DeepEqual(Flat(7), parsed(t, "7")) {
		t.Errorf("Flat(7) is %v", Flat(7))
	}
}

func TestNextByArithmetic(t *testing.T) {
	check := func(text string, i int, fromS float64, active bool, wantNs int64) {
		t.Helper()
		if got := parsed(t, text).Next(i, int64(fromS*1e9), active); got != wantNs {
			t.Errorf("%s: user %d, %v from %g s on, turns at %d, want %d", text, i, active, fromS,
				got, wantNs)
		}
	}
	check("7", 6, 0, false, 0) // at once
	check("7", 6, 0, true, Never)
	check("7", 7, 0, false, Never)
	check("7", 7, 3, true, 3e9)
	check("2.9", 1, 0, false, 0) // of 2.9 users two are active
	check("2.9", 2, 0, false, Never)
	ramp := "ramp 0..100 in 10s, 100 for 5s, ramp 100..0 in 10s"
	check(ramp, 0, 0, false, 1e8) // 1 is reached after 0.1 s
	check(ramp, 49, 0, false, 5e9)
	check(ramp, 99, 0, false, 10e9)
	check(ramp, 100, 0, false, Never)
	check(ramp, 0, 1, true, 24.9e9+1) // at 24.9 s there is still one
	check(ramp, 49, 5, true, 20e9+1)
	check(ramp, 49, 20.5, false, Never)
	check("repeat 1 for 1s, 3 for 1s", 1, 0, false, 1e9)
	check("repeat 1 for 1s, 3 for 1s", 1, 1.5, true, 2e9)
	check("repeat 1 for 1s, 3 for 1s", 1, 6.5, false, 7e9)
	check("repeat 1 for 1s, 3 for 1s", 0, 6.5, true, Never)
	check("repeat 1 for 1s, 3 for 1s", 1, 7.5, true, 8e9) // in the cycle after
}

// Every change that Next returns is the first one of At, which is called for each nanosecond of
// small profiles of all kinds; and changes always advance.
func TestNextAgreesWithAt(t *testing.T) {
	check := func(p Profile, seed uint64) {
		t.Helper()
		const horizon = 200
		for i := range 4 {
			for from := range int64(horizon) {
				for _, active := range []bool{false, true} {
					want := from
					for want < 3*horizon && (p.At(want) >= float64(i)+1) == active {
						want++
					}
					if want == 3*horizon {
						want = Never
					}
					if got := p.Next(i, from, active); got != want {
						t.Fatalf("seed %d, %s: user %d, %v from %d on, turns at %d, want %d", seed,
							p, i, active, from, got, want)
					}
				}
			}
		}
	}
	for seed := range uint64(40) {
		p := Profile{Cycles: seed%2 == 0}
		for k := range 1 + Below(seed, 99, 5) {
			piece := Piece{ForNs: 1 + int64(Below(seed, 3*k, 30))}
			piece.From, piece.To = float64(Below(seed, 3*k+1, 11))/2, float64(Below(seed, 3*k+2, 5))
			p.Pieces = append(p.Pieces, piece)
		}
		check(p, seed)
	}
}

func TestTurnsMoveOn(t *testing.T) {
	for _, text := range append(shapes, "repeat 1 for 1ns, 2 for 1ns") {
		p := parsed(t, text).Scale(1. / 1000)
		for i := range 5 {
			at, active := int64(-1), false
			for range 1000 {
				next := p.Next(i, max(at, 0), active)
				if next == Never {
					break
				}
				if next <= at {
					t.Fatalf("%s: user %d turns at %d and again at %d", text, i, at, next)
				}
				at, active = next, !active
			}
		}
	}
}

func TestCheckRefusesWhatIsNoNumber(t *testing.T) {
	for _, v := range []float64{-1, math.NaN(), math.Inf(1)} {
		p := Profile{Pieces: []Piece{{1e9, 1, v}}}
		wantError(t, p.Check, "a value is a number from 0 on")
	}
}
