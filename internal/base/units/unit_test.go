package units

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestFormat(t *testing.T) {
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q, wanted %q", what, got, want)
		}
	}
	for x, want := range map[float64]string{
		0: "0", 0.5: "0.50", 3.14159: "3.14", 42.42: "42.4", 320: "320", 999.4: "999",
		999.6: "1.00k", 48_249: "48.2k", 999_499: "999k", 999_501: "1.00M", 1_214_000: "1.21M",
	} {
		check("rate", Rate(x), want)
	}
	for ns, want := range map[float64]string{
		0: "0 s", 850: "850 ns", 4_120: "4.12 µs", 310e6: "310 ms", 1.24e9: "1.24 s",
		999.9e3: "1.00 ms",
	} {
		check("duration", Duration(ns), want)
	}
	for d, want := range map[time.Duration]string{
		118 * time.Second: "118 s", 7100 * time.Second: "118 min", 7230 * time.Second: "2 h",
		90 * time.Minute: "90 min", 450 * time.Minute: "7.5 h", 47 * time.Hour: "47 h",
		78 * time.Hour: "3.2 days",
	} {
		check("time", Roughly(d), want)
	}
	for n, want := range map[float64]string{
		512: "512 B", 1024: "1.0 KiB", 9 << 20: "9.0 MiB", 142 << 20: "142 MiB",
		1023.6 * (1 << 20): "1.0 GiB",
	} {
		check("bytes", Bytes(n), want)
	}
	for share, want := range map[float64]string{
		0: "0 %", 0.019: "1.9 %", 0.12: "12 %", 0.0004: "0.04 %", -0.03: "-3.0 %", 1: "100 %",
	} {
		check("percent", Percent(share), want)
	}
	for share, want := range map[float64]string{
		0: "0 %", 0.1: "10 %", 0.104: "11 %", 0.0304: "3.1 %", 0.03: "3.0 %", 0.0994: "10 %",
		0.00041: "0.05 %", 0.0004: "0.04 %", 0.00094: "0.1 %", 1.001: "101 %",
	} {
		check("bound", AtMost(share), want)
	}
	for n, want := range map[int64]string{
		0: "0", 999: "999", 3838: "3,838", 1234567: "1,234,567", -1000: "-1,000",
	} {
		check("count", Count(n), want)
	}
}

// TestScale checks that all values have one unit and one number of decimals, with two digits for
// the smallest.
func TestScale(t *testing.T) {
	for _, row := range []struct {
		ns   []float64
		want string
	}{
		{[]float64{0.21e6, 0.74e6, 5.4e6}, "0.21 ms 0.74 ms 5.40 ms"},
		{[]float64{4.2e6, 310e6}, "4.2 ms 310.0 ms"},
		{[]float64{45e6, 310e6}, "45 ms 310 ms"},
		{[]float64{21e3, 60e3, 99e3}, "21 µs 60 µs 99 µs"}, // median below 0.1 ms
		{[]float64{0.2e9, 1.5e9, 3e9}, "0.20 s 1.50 s 3.00 s"},
		{[]float64{1e3, 1e6, 2e6}, "0.001 ms 1.000 ms 2.000 ms"}, // at most three decimals
	} {
		var got []string
		s := ScaleFor(row.ns)
		for _, x := range row.ns {
			got = append(got, s.Print(x))
		}
		if text := strings.Join(got, " "); text != row.want {
			t.Errorf("%v: %s, wanted %s", row.ns, text, row.want)
		}
	}
}

func TestChangesArePrinted(t *testing.T) {
	check := func(ratio float64, want string) {
		t.Helper()
		if got := Change(ratio); got != want {
			t.Errorf("%v is %q, want %q", ratio, got, want)
		}
	}
	check(1.05, "+5.0 %")
	check(0.95, "−5.0 %")
	check(1, "+0 %")
	check(0.9996, "−0.04 %")
	check(3.05, "+205 %")
	check(14, "×14.0")
	check(math.NaN(), Absent)
	check(math.Inf(1), Absent)
}

func TestDigits(t *testing.T) {
	check := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	check(Digits(0.099, 3), "0.099")
	check(Digits(0.1, 3), "0.10")
	check(Digits(99.949, 3), "99.9")
	check(Digits(99.951, 3), "100")
	check(Duration(-4_120), "-4.12 µs")
	check(Bytes(-2048), "-2.0 KiB")
	check(Plural(1, "core"), "1 core")
	check(Plural(0, "core"), "0 cores")
	check(Plural(2, "core"), "2 cores")
	check(Plural(1000, "core"), "1,000 cores")
	check(P(0.0004), "<0.001")
	check(Raw(math.NaN()), "")
	check(Hash("0123456789abcdef"), "0123456789ab")
	check(Quantity(math.Inf(1), Ns), Absent)
	check(Quantity(2048, Octet), "2.0 KiB")
	check(Quantity(0.00123, J), "1.23 mJ")
	check(Quantity(3.81e-5, J), "38.1 µJ")
	check(Quantity(12, J), "12.0 J")
	check(Quantity(4e-9, J), "4.00 nJ")
	check(Quantity(math.NaN(), J), Absent)
}

func TestFine(t *testing.T) {
	for perS, want := range map[float64]string{
		0.5: "0.5", 98.76: "98.76", 907.94: "907.9", 1234.4: "1234", 9999.4: "9999",
		9999.6: "10k", 48213: "48.21k", 1.2e6: "1.2M", 999_960: "1M",
	} {
		if got := FineRate(perS); got != want {
			t.Errorf("FineRate(%v) = %s, want %s", perS, got, want)
		}
	}
}

func TestCapital(t *testing.T) {
	for in, want := range map[string]string{"": "", "a b": "A b", "ärger": "Ärger"} {
		if got := Capital(in); got != want {
			t.Errorf("Capital(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestWhole(t *testing.T) {
	check := func(x float64, want string) {
		t.Helper()
		if got := Whole(x); got != want {
			t.Errorf("Whole(%g) = %q, want %q", x, got, want)
		}
	}
	check(1234.5, "1,235")
	check(-1e18, "-1,000,000,000,000,000,000")
	check(1<<63, "9.22e+18") // one more than an integer holds
	check(-3e25, "-3e+25")
	check(math.NaN(), "NaN")
}
