package pace

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReadTrace(t *testing.T) {
	check := func(text string, want ...int64) {
		t.Helper()
		got, err := ReadTrace(strings.NewReader(text))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
	check("# prony trace 1\n0\n", 0)
	check("# prony trace 1\n0.000000001\n1\n1.5\n1.500\n", 1, 1e9, 1.5e9, 1.5e9)
	check("# prony trace 1\r\n# by hand\r\n\r\n .25 \r\n007", 25e7, 7e9)
	// No float64 holds these 19 digits.
	check("# prony trace 1\n4611686018.427387903\n", 4611686018427387903)
}

func TestBadTraces(t *testing.T) {
	check := func(text, want string) {
		t.Helper()
		wantError(t, func() error {
			_, err := ReadTrace(strings.NewReader(text))
			return err
		}, want)
	}
	const head = "# prony trace 1\n"
	check("0.5\n", `read the trace: line 1: "0.5" is not "# prony trace 1"`)
	check("# prony trace 2\n0.5\n", `line 1: "# prony trace 2" is not`)
	check("", "line 1: the trace ends without an arrival")
	check(head+"# none\n", "line 3: the trace ends without an arrival")
	check(head+"2\n# x\n1.9\n", "line 4: 1.9 s comes before the arrival above it; sort the trace")
	for _, bad := range []string{"-1", "+1", "1e3", "1.", ".", "1,5", "1s", "1.2.3", "0.0000000001",
		"12:30", "NaN"} {
		check(head+"0\n"+bad+"\n", `line 3: "`+bad+`" is not an offset`)
	}
	check(head+"4611686018.427387904\n", "less than 146 years")
	check(head+"99999999999999999999\n", "less than 146 years")
	check(head+strings.Repeat("1", 100_000), "line 2: bufio.Scanner: token too long")
	wantError(t, func() error {
		_, err := ReadTrace(iotest.ErrReader(errors.New("the disk is gone")))
		return err
	}, "line 1: the disk is gone")
}

// A written trace is read back to the nanosecond, up to the horizon.
func TestTracesRoundTrip(t *testing.T) {
	check := func(p func() Process, horizonNs int64) {
		t.Helper()
		var text strings.Builder
		if err := WriteTrace(&text, p(), horizonNs); err != nil {
			t.Fatal(err)
		}
		got, err := ReadTrace(strings.NewReader(text.String()))
		if err != nil {
			t.Fatal(err)
		}
		if n := Count(p(), 0, horizonNs); n != int64(len(got)) {
			t.Errorf("%d arrivals came back of %d", len(got), n)
		}
		if a, b := Hash(p(), horizonNs), Hash(replayed(t, got...), horizonNs); a != b {
			t.Errorf("hash %s became %s", a, b)
		}
	}
	for _, text := range shapes {
		for _, name := range all {
			check(func() Process { return shape(t, name, text, 8) }, 4e9)
		}
	}
	check(func() Process { return replayed(t, 0, 1, 999_999_999, 1e9, farNs-1) }, Never)
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestWriteTraceSaysThatItFailed(t *testing.T) {
	wantError(t, func() error { return WriteTrace(full{}, replayed(t, 1), 10) },
		"write the trace: no space left")
}

// A load of n requests has n arrivals after its lead-in, however long it may take.
func TestLimit(t *testing.T) {
	for _, c := range []struct {
		startNs, n, want int64
	}{{0, 3, 3}, {250, 2, 4}, {250, 0, 2}, {0, 9, 6}} {
		p := Limit(replayed(t, 100, 200, 300, 400, 500, 600), c.startNs, c.n)
		if n := Count(p, 0, Never); n != c.want {
			t.Errorf("%d arrivals from %d of %d, want %d", n, c.startNs, c.n, c.want)
		}
	}
}

// A full disk ends the writing: endless arrivals would go on for a day.
func TestWriteTraceEndsAtAnError(t *testing.T) {
	p := &counted{}
	wantError(t, func() error { return WriteTrace(full{}, p, 1<<20) }, "no space left")
	if p.atNs > 1<<16 {
		t.Errorf("went on until arrival %d", p.atNs)
	}
}

type counted struct{ atNs int64 }

func (c *counted) Next() int64 {
	c.atNs++
	return c.atNs
}
