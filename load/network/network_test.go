package network

import (
	"testing"
	"time"
)

const ms = time.Millisecond

func TestParse(t *testing.T) {
	check := func(text string, want Delay, printed string) {
		t.Helper()
		got, err := Parse(text)
		if err != nil || got != want || got.String() != printed {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
		if again, err := Parse(got.String()); err != nil || again != got {
			t.Errorf("%q reads back as %v, %v", got, again, err)
		}
	}
	check("none", Delay{}, "none")
	check("delay 5ms", Delay{5 * ms, 0}, "delay 5ms")
	check(" delay 5ms ± 1ms ", Delay{5 * ms, ms}, "delay 5ms ± 1ms")
	check("delay 5ms±1ms", Delay{5 * ms, ms}, "delay 5ms ± 1ms")
	check("delay 1.5ms +- 500us", Delay{1500 * time.Microsecond, 500 * time.Microsecond},
		"delay 1.5ms ± 500µs")
	for _, text := range []string{"", "delay", "delay ", "5ms", "delay 5", "delay -5ms",
		"delay 5ms ± 6ms", "delay 5ms ±", "delay 0ms", "delay 11s", "delay 99us", "loss 1%",
		"delay 5ms ± -1ms"} {
		if d, err := Parse(text); err == nil {
			t.Errorf("%q is %v", text, d)
		}
	}
}

// Draws of one direction lie within half of the jitter around half of the delay, reach both ends to
// 1 %, and are the same for the same seed and number. The mean of 10,000 draws of a uniform
// distribution over 1 ms has a standard error of 1 ms / √12 / 100 = 2.9 µs.
func TestOneWay(t *testing.T) {
	d := Delay{5 * ms, ms}
	least, most, sum := int64(1<<62), int64(0), int64(0)
	const n = 10_000
	for k := range uint64(n) {
		ns := d.OneWay(3, k)
		if ns != d.OneWay(3, k) {
			t.Fatal("a draw is not a function of seed and number")
		}
		least, most, sum = min(least, ns), max(most, ns), sum+ns
	}
	if least < 2_000_000 || least > 2_010_000 || most > 3_000_000 || most < 2_990_000 {
		t.Errorf("draws from %d to %d ns, want 2 to 3 ms", least, most)
	}
	if mean := sum / n; mean < 2_485_000 || mean > 2_515_000 {
		t.Errorf("the mean is %d ns, want 2.5 ms", mean)
	}
	if ns := (Delay{5 * ms, 0}).OneWay(3, 1); ns != 2_500_000 {
		t.Errorf("without jitter %d ns", ns)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"none", "delay 5ms ± 1ms", "delay 1h", "delay 5ms±", "±"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(d.String()); err != nil || again != d {
			t.Errorf("%q is %v, and reads back as %v, %v", text, d, again, err)
		}
	})
}
