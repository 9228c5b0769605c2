package pace

import (
	"reflect"
	"strings"
	"testing"
)

func wantError(t *testing.T, f func() error, want string) {
	t.Helper()
	if err := f(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one that says %q", err, want)
	}
}

func TestParse(t *testing.T) {
	check := func(text, canonical string, pieces ...Piece) {
		t.Helper()
		p, err := Parse(text)
		if err != nil {
			t.Error(err)
			return
		}
		want := Profile{Pieces: pieces, Cycles: strings.HasPrefix(text, "repeat")}
		if !reflect.DeepEqual(p, want) {
			t.Errorf("%q parses to %v, want %v", text, p.Pieces, pieces)
		}
		if got := p.String(); got != canonical {
			t.Errorf("%q prints as %q, want %q", text, got, canonical)
		}
	}
	check("1000", "1000", Piece{0, 1000, 1000})
	check(" 1000/s ", "1000", Piece{0, 1000, 1000})
	check("20k/s", "20000", Piece{0, 20_000, 20_000})
	check("1.5M", "1500000", Piece{0, 1.5e6, 1.5e6})
	check("-0", "0", Piece{0, 0, 0})
	check("1e3 for 90s", "1000 for 1m30s", Piece{90e9, 1000, 1000})
	check("5 for 80m", "5 for 1h20m", Piece{4800e9, 5, 5})
	check("5 for 60m,6", "5 for 1h, 6", Piece{3600e9, 5, 5}, Piece{0, 6, 6})
	check("ramp 100..2k in 30s", "ramp 100..2000 in 30s", Piece{30e9, 100, 2000})
	check("ramp 100/s..2000/s in 30s, 0", "ramp 100..2000 in 30s, 0", Piece{30e9, 100, 2000},
		Piece{0, 0, 0})
	check("steps 1..3 by 1 every 2s", "1 for 2s, 2 for 2s, 3 for 2s", Piece{2e9, 1, 1},
		Piece{2e9, 2, 2}, Piece{2e9, 3, 3})
	check("steps 3..0 by 2 every 1s", "3 for 1s, 1 for 1s, 0 for 1s", // the end is always included
		Piece{1e9, 3, 3}, Piece{1e9, 1, 1}, Piece{1e9, 0, 0})
	check("steps 0.1..0.4 by 0.1 every 1s", // (0.4-0.1)/0.1 is more than 3 in floats
		"0.1 for 1s, 0.2 for 1s, 0.30000000000000004 for 1s, 0.4 for 1s", Piece{1e9, 0.1, 0.1},
		Piece{1e9, 0.2, 0.2}, Piece{1e9, 0.30000000000000004, 0.30000000000000004},
		Piece{1e9, 0.4, 0.4})
	check("steps 5..5 by 1 every 1s", "5 for 1s", Piece{1e9, 5, 5})
	check("spike 10..99 at 10s for 500ms", "10 for 10s, 99 for 500ms, 10", Piece{10e9, 10, 10},
		Piece{5e8, 99, 99}, Piece{0, 10, 10})
	check("1 for 1s, spike 2..3 at 1s for 1s", "1 for 1s, 2 for 1s, 3 for 1s, 2", Piece{1e9, 1, 1},
		Piece{1e9, 2, 2}, Piece{1e9, 3, 3}, Piece{0, 2, 2})
	check("repeat 1 for 1s, ramp 1..2 in 1s", "repeat 1 for 1s, ramp 1..2 in 1s", Piece{1e9, 1, 1},
		Piece{1e9, 1, 2})
	p := parsed(t, "sine 1k..5k every 60s")
	if got := p.String(); !p.Cycles || len(p.Pieces) != 128 || got != "sine 1000..5000 every 1m" {
		t.Errorf("the sine prints as %q", got)
	}
	odd := parsed(t, "sine 0.3..0.9 every 1s") // 0.3 + (0.9-0.3) is not 0.9 in floats
	if got := odd.String(); odd.Max() != 0.9 || got != "sine 0.3..0.9 every 1s" {
		t.Errorf("the odd sine prints as %q", got)
	}
	if got := p.Scale(2).String(); got != "sine 2000..10000 every 1m" {
		t.Errorf("the doubled sine prints as %q", got)
	}
}

func TestParseErrors(t *testing.T) {
	check := func(text, want string) {
		t.Helper()
		wantError(t, func() error {
			_, err := Parse(text)
			return err
		}, want)
	}
	check("", `read the profile "": piece 1 (""): it is empty; write, for instance, 1000`)
	check("1000 for 1s,", `piece 2 (""): it is empty`)
	check("fast", `piece 1 ("fast"): "fast" is not a number such as 1000, 0.5, 20k or 1M`)
	check("inf", `"inf" is not a number`)
	check("nan", `"nan" is not a number`)
	check("0x10", `"0x10" is not a number`)
	check("1_000", `"1_000" is not a number`)
	check("-5", `"-5" is neither 0 nor between 1e-06 and 1e+08`)
	check("1e9", `"1e9" is neither`)
	check("1e-9", `"1e-9" is neither`)
	check("101M", `"101M" is neither`)
	check("1000 2000", "no such piece; there are 1000, 1000 for 10s, ramp")
	check("1000 during 10s", `"during" stands where "for" should; want "1000 for 10s"`)
	check("1000 for 10", `"10" is not a time above 0, such as 500ms, 10s or 1m30s`)
	check("1000 for 0s", `"0s" is not a time above 0`)
	check("1 for 1s, 1000 for -1s", `piece 2 ("1000 for -1s"): "-1s" is not a time above 0`)
	check("ramp 100 to 200 in 1s", `want "ramp 1000..5000 in 10s"`)
	check("ramp 100-200 in 1s", `"100-200" is not a range; want "ramp 1000..5000 in 10s"`)
	check("ramp 1..x in 1s", `"x" is not a number`)
	check("steps 1..5 by 0 every 1s", "steps of 0 lead nowhere")
	check("steps 1..1M by 1 every 1s", "steps are more than 10000; take larger ones")
	check("steps 1..6k by 1 every 1s, steps 1..6k by 1 every 1s", "more than 10000 pieces")
	check("sine 1..2 every 100ns", "too short")
	check("1 for 1s, sine 1..2 every 1s", "a sine stands alone")
	check("sine 1..2 every 1s, 5", "a sine stands alone")
	check("repeat sine 1..2 every 1s", "a sine stands alone")
	check("1000, 5", `piece 1 ("1000"): it never ends, so none can follow; write "for 10s"`)
	check("spike 1..2 at 1s for 1s, 5", "it never ends")
	check("repeat 5", `what repeats needs a time; write "for 10s"`)
	check("1 for 2000000h, 1 for 2000000h", "longer than 146 years")
}

func FuzzParse(f *testing.F) {
	for _, text := range append(shapes, "1000", "20k/s for 1h", "repeat 5 for 1ns", ",", "-0",
		"steps 0.1..0.3 by 0.1 every 1s", "sine 0.1..0.7 every 129ns") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(p.String())
		if err != nil || !reflect.DeepEqual(p, again) {
			t.Fatalf("%q prints as %q, which parses to %q, %v", text, p, again, err)
		}
		// Any parsed profile supports all methods, and as a rate has arrivals in order.
		_ = p.Mean(0, 1e9) + p.At(1e12) // must not panic
		process, err := Schedule{Arrivals: Poisson, Rate: p}.Process(1)
		if err != nil {
			if p.Max() == 0 {
				return
			}
			t.Fatalf("%q is not a rate: %v", text, err)
		}
		before := int64(0)
		for _, at := range first(process, 100) {
			if at < before {
				t.Fatalf("%q: an arrival at %d after %d", text, at, before)
			}
			before = at
		}
	})
}
