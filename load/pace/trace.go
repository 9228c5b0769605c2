package pace

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// traceHead is the first line of a trace; docs/formats/trace.md describes the rest.
const traceHead = "# prony trace 1"

// maxTrace bounds the arrivals of a trace: 800 MB of offsets.
const maxTrace = 100_000_000

// ReadTrace reads the arrivals of a recorded trace: offsets in ns, never decreasing. Errors name
// the line.
func ReadTrace(r io.Reader) ([]int64, error) {
	lines := bufio.NewScanner(r)
	var trace []int64
	number := 0
	fail := func(cause string, args ...any) ([]int64, error) {
		return nil, fmt.Errorf("read the trace: line %d: %w", number, fmt.Errorf(cause, args...))
	}
	for lines.Scan() {
		number++
		line := strings.TrimSpace(lines.Text())
		if number == 1 && line != traceHead {
			return fail("%q is not %q; a trace begins with that line", line, traceHead)
		}
		if line == "" || line[0] == '#' {
			continue
		}
		atNs, err := parseOffset(line)
		if err != nil {
			return fail("%w", err)
		}
		if n := len(trace); n > 0 && atNs < trace[n-1] {
			return fail("%s s comes before the arrival above it; sort the trace, as with sort -n",
				line)
		}
		if len(trace) == maxTrace {
			return fail("more than %d arrivals", maxTrace)
		}
		trace = append(trace, atNs)
	}
	number++
	if err := lines.Err(); err != nil {
		return fail("%w", err)
	}
	if len(trace) == 0 {
		return fail("the trace ends without an arrival")
	}
	return trace, nil
}

// parseOffset parses seconds with up to nine decimals as ns, in integers, so no digit is lost.
func parseOffset(text string) (int64, error) {
	full, fraction, point := strings.Cut(text, ".")
	digits := full + fraction
	if point && fraction == "" || len(fraction) > 9 || strings.Trim(digits, "0123456789") != "" {
		return 0, fmt.Errorf("%q is not an offset: "+
			"seconds from the start, as in 12.000345, with nine "+
			"decimals at the most", text)
	}
	ns, err := strconv.ParseInt(digits+"000000000"[len(fraction):], 10, 64)
	if err != nil || ns >= farNs {
		return 0, fmt.Errorf("%q is not an offset: "+
			"it is 0 s or more, and less than 146 years", text)
	}
	return ns, nil
}

// Limit returns a process that has no arrival after n of p at startNs or later.
func Limit(p Process, startNs, n int64) Process { return &limited{p, startNs, n} }

type limited struct {
	Process
	startNs, remaining int64
}

func (l *limited) Next() int64 {
	atNs := l.Process.Next()
	if atNs < l.startNs {
		return atNs
	}
	if l.remaining == 0 {
		return Never
	}
	l.remaining--
	return atNs
}

// WriteTrace writes the arrivals before horizonNs. It consumes p.
func WriteTrace(w io.Writer, p Process, horizonNs int64) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, traceHead)
	for atNs := p.Next(); atNs < horizonNs; atNs = p.Next() {
		if _, err := fmt.Fprintf(out, "%d.%09d\n", atNs/1e9, atNs%1e9); err != nil {
			break // Flush returns it
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the trace: %w", err)
	}
	return nil
}
