package pace

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Grammar shows the syntax of Parse, for help texts and errors.
const Grammar = "1000, 1000 for 10s, ramp 100..2000 in 30s, steps 1000..5000 by 1000 every 10s, " +
	"spike 1000..10000 at 10s for 2s, sine 1000..5000 every 60s"

// maxPieces bounds a profile in text form: one step per second for almost three hours.
const maxPieces = 10_000

// Parse parses a profile from pieces separated by commas (see Grammar): a value for a time or
// forever; a ramp between two values; steps, the last of which is the second value; a spike, which
// returns to the first value forever; a sine, which begins at its first value and reaches the
// second after half a period. A sine must be the only piece and repeats forever; pieces that all
// have a time repeat after the word "repeat". Every other profile keeps its last value.
//
// Values are 0 or from 1e-6 to 1e8, optionally with k or M for thousands and millions and with /s
// after them. Times are as in Go: 500ms, 10s, 1m30s.
func Parse(text string) (Profile, error) {
	p, err := parse(text)
	if err == nil {
		err = p.Check()
	}
	if err != nil {
		return Profile{}, fmt.Errorf("read the profile %q: %w", text, err)
	}
	return p, nil
}

func parse(text string) (Profile, error) {
	var p Profile
	tail := strings.TrimSpace(text)
	if after, ok := strings.CutPrefix(tail, "repeat "); ok {
		p.Cycles, tail = true, after
	}
	parts := strings.Split(tail, ",")
	for i, part := range parts {
		words := strings.Fields(part)
		pieces, err := parsePiece(words)
		if err != nil {
			return Profile{}, fmt.Errorf("piece %d (%q): %w", i+1, strings.Join(words, " "), err)
		}
		p.Pieces = append(p.Pieces, pieces...)
		switch forGood := pieces[len(pieces)-1].ForNs == 0; {
		case words[0] == "sine" && (len(parts) > 1 || p.Cycles):
			return Profile{}, fmt.Errorf("piece %d (%q): a sine stands alone, for it never ends",
				i+1, part)
		case words[0] == "sine":
			p.Cycles = true
		case forGood && p.Cycles:
			return Profile{}, fmt.Errorf("piece %d (%q): what repeats needs a time; write "+
				"\"for 10s\"", i+1, part)
		case forGood && i < len(parts)-1:
			return Profile{}, fmt.Errorf("piece %d (%q): it never ends, so none can follow; write "+
				"\"for 10s\" or put it last", i+1, part)
		case len(p.Pieces) > maxPieces:
			return Profile{}, fmt.Errorf("more than %d pieces; take larger steps", maxPieces)
		}
	}
	return p, nil
}

// Words of a form that stand for a value, a range or a time.
const (
	aValue = "1000"
	aRange = "1000..5000"
	aTime  = "10s"
)

// forms are the shapes of pieces, each written as an example.
var forms = []struct {
	words string
	make  func(values []float64, times []int64) ([]Piece, error)
}{
	{"1000", func(v []float64, _ []int64) ([]Piece, error) {
		return []Piece{{0, v[0], v[0]}}, nil
	}},
	{"1000 for 10s", func(v []float64, t []int64) ([]Piece, error) {
		return []Piece{{t[0], v[0], v[0]}}, nil
	}},
	{"ramp 1000..5000 in 10s", func(v []float64, t []int64) ([]Piece, error) {
		return []Piece{{t[0], v[0], v[1]}}, nil
	}},
	{"steps 1000..5000 by 1000 every 10s", func(v []float64, t []int64) ([]Piece, error) {
		return steps(v[0], v[1], v[2], t[0])
	}},
	{"spike 1000..5000 at 10s for 10s", func(v []float64, t []int64) ([]Piece, error) {
		return []Piece{{t[0], v[0], v[0]}, {t[1], v[1], v[1]}, {0, v[0], v[0]}}, nil
	}},
	{"sine 1000..5000 every 10s", func(v []float64, t []int64) ([]Piece, error) {
		if t[0] < sinePieces {
			return nil, fmt.Errorf("a period of %d ns is too short", t[0])
		}
		return sine(v[0], v[1], t[0]), nil
	}},
}

// parsePiece parses the words of one piece by the form with the same first word.
func parsePiece(words []string) ([]Piece, error) {
	if len(words) == 0 {
		return nil, fmt.Errorf("it is empty; write, for instance, %s", Grammar)
	}
	for _, form := range forms {
		pattern := strings.Fields(form.words)
		named := pattern[0] != aValue
		if named && pattern[0] != words[0] || !named && len(pattern) != len(words) {
			continue
		}
		if len(pattern) != len(words) {
			return nil, fmt.Errorf("want %q", form.words)
		}
		var values []float64
		var times []int64
		for i, kind := range pattern {
			if err := parseWord(kind, words[i], &values, &times); err != nil {
				return nil, fmt.Errorf("%w; want %q", err, form.words)
			}
		}
		return form.make(values, times)
	}
	return nil, fmt.Errorf("no such piece; there are %s", Grammar)
}

func parseWord(kind, word string, values *[]float64, times *[]int64) error {
	switch kind {
	case aValue:
		v, err := parseValue(word)
		*values = append(*values, v)
		return err
	case aRange:
		from, to, ok := strings.Cut(word, "..")
		if !ok {
			return fmt.Errorf("%q is not a range", word)
		}
		if err := parseWord(aValue, from, values, times); err != nil {
			return err
		}
		return parseWord(aValue, to, values, times)
	case aTime:
		d, err := time.ParseDuration(word)
		if err != nil || d <= 0 {
			return fmt.Errorf("%q is not a time above 0, such as 500ms, 10s or 1m30s", word)
		}
		*times = append(*times, int64(d))
		return nil
	}
	if word != kind {
		return fmt.Errorf("%q stands where %q should", word, kind)
	}
	return nil
}

func parseValue(word string) (float64, error) {
	digits, unit := strings.TrimSuffix(word, "/s"), 1.0
	if before, ok := strings.CutSuffix(digits, "k"); ok {
		digits, unit = before, 1e3
	} else if before, ok := strings.CutSuffix(digits, "M"); ok {
		digits, unit = before, 1e6
	}
	v, err := strconv.ParseFloat(digits, 64)
	v *= unit
	// ParseFloat accepts notations that are not meant here: 0x1p4, inf.
	if err != nil || strings.Trim(digits, "0123456789.eE+-") != "" {
		return 0, fmt.Errorf("%q is not a number such as 1000, 0.5, 20k or 1M", word)
	}
	if !(v == 0 || v >= minPerS && v <= maxPerS) {
		return 0, fmt.Errorf("%q is neither 0 nor between %g and %g", word, minPerS, maxPerS)
	}
	return math.Abs(v), nil // -0 is 0
}

// steps returns pieces that keep each value for everyNs, from the first to the last value, which is
// always included.
func steps(from, to, change float64, everyNs int64) ([]Piece, error) {
	if change == 0 {
		return nil, fmt.Errorf("steps of 0 lead nowhere")
	}
	// A remainder that is due only to rounding is not a step.
	n := math.Ceil(math.Abs(to-from)/change - 1e-9)
	if n >= maxPieces {
		return nil, fmt.Errorf("%g steps are more than %d; take larger ones", n, maxPieces)
	}
	change = math.Copysign(change, to-from)
	var pieces []Piece
	for i := range int(n) {
		v := from + float64(float64(i)*change)
		pieces = append(pieces, Piece{everyNs, v, v})
	}
	return append(pieces, Piece{everyNs, to, to}), nil
}

// sinePieces is how many straight lines approximate a period. The error is greatest at the crests,
// (2π/128)²/8 of the amplitude: 0.03 % of it, 0.015 % of the range.
const sinePieces = 128

// sine returns one period. Cosines are rounded to nine decimals, because their last bits differ
// between processors; the ends are exact.
func sine(from, to float64, periodNs int64) []Piece {
	pieces := make([]Piece, sinePieces)
	edge := func(i int64) (ns int64, value float64) {
		c := math.Round(math.Cos(2*math.Pi*float64(i)/sinePieces)*1e9) / 1e9
		w := float64((1 - c) / 2)
		ns = periodNs/sinePieces*i + periodNs%sinePieces*i/sinePieces
		return ns, float64(from*(1-w)) + float64(to*w)
	}
	start, v := edge(0)
	for i := range pieces {
		end, next := edge(int64(i) + 1)
		pieces[i] = Piece{end - start, v, next}
		start, v = end, next
	}
	return pieces
}

// String formats the profile for Parse, which returns the same profile to the last bit if the
// values are within Parse's bounds.
func (p Profile) String() string {
	if p.isSine() {
		return fmt.Sprintf("sine %s every %s", span(p.Pieces[0].From, p.Pieces[sinePieces/2].From),
			Brief(p.Duration()))
	}
	words := make([]string, len(p.Pieces))
	for i, piece := range p.Pieces {
		switch {
		case piece.ForNs == 0:
			words[i] = value(piece.From)
		case piece.From == piece.To:
			words[i] = value(piece.From) + " for " + Brief(piece.ForNs)
		default:
			words[i] = "ramp " + span(piece.From, piece.To) + " in " + Brief(piece.ForNs)
		}
	}
	text := strings.Join(words, ", ")
	if p.Cycles {
		return "repeat " + text
	}
	return text
}

func (p Profile) isSine() bool {
	return p.Cycles && len(p.Pieces) == sinePieces && slices.Equal(p.Pieces,
		sine(p.Pieces[0].From, p.Pieces[sinePieces/2].From, p.Duration()))
}

func value(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func span(from, to float64) string { return value(from) + ".." + value(to) }

// Brief formats a time in ns as Go does, but 1m instead of 1m0s and 1h instead of 1h0m0s.
func Brief(ns int64) string {
	s := time.Duration(ns).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
