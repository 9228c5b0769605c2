// Package network describes a simulated network between load generator and service: a delay that
// the generator adds to the bytes of its connections. Package load/engine/delayed adds it.
//
// Non-goals: bandwidth, loss, congestion control, and any system call.
package network

import (
	"fmt"
	"strings"
	"time"

	"prony.example/load/pace"
)

// Delay is the time that a network adds to each round trip, half of it in each direction. Each
// piece of bytes has a time of its own in its direction, uniformly distributed within half of
// Jitter around half of RoundTrip, so a round trip takes RoundTrip ± Jitter, with a triangular
// distribution. The zero Delay adds nothing.
type Delay struct {
	RoundTrip time.Duration
	Jitter    time.Duration // at most RoundTrip
}

// None is the text of the zero Delay.
const None = "none"

// Grammar shows the syntax of Parse, for help texts and errors.
const Grammar = "'delay 5ms', 'delay 5ms ± 1ms' or none"

// Bounds of a round trip. A shorter delay would be within the error of the added time.
const (
	Least = 100 * time.Microsecond
	Most  = 10 * time.Second
)

// Parse parses "delay 5ms", "delay 5ms ± 1ms" or "none". In place of ±, +- is possible. Times are
// as in Go. The round trip must be from Least to Most, and the jitter at most the round trip.
func Parse(text string) (Delay, error) {
	d, err := parse(text)
	if err != nil {
		return Delay{}, fmt.Errorf("read the network %q: %w; write %s", text, err, Grammar)
	}
	return d, nil
}

func parse(text string) (d Delay, err error) {
	text = strings.TrimSpace(text)
	if text == None {
		return Delay{}, nil
	}
	times, ok := strings.CutPrefix(text, "delay ")
	if !ok {
		return Delay{}, fmt.Errorf("it does not begin with \"delay\"")
	}
	trip, jitter, varies := strings.Cut(strings.ReplaceAll(times, "+-", "±"), "±")
	if d.RoundTrip, err = time.ParseDuration(strings.TrimSpace(trip)); err != nil {
		return Delay{}, err
	}
	if varies {
		if d.Jitter, err = time.ParseDuration(strings.TrimSpace(jitter)); err != nil {
			return Delay{}, err
		}
	}
	if d.IsZero() {
		return d, fmt.Errorf("a delay of 0 is none")
	}
	return d, d.Check()
}

// Check returns an error if the delay is outside of its bounds.
func (d Delay) Check() error {
	switch {
	case d == Delay{}:
		return nil
	case d.RoundTrip < Least || d.RoundTrip > Most:
		return fmt.Errorf("a delay of %v is not from %v to %v", d.RoundTrip, Least, Most)
	case d.Jitter < 0 || d.Jitter > d.RoundTrip:
		return fmt.Errorf("a jitter of %v is not from 0 to the delay of %v", d.Jitter, d.RoundTrip)
	}
	return nil
}

// IsZero reports whether the delay adds nothing.
func (d Delay) IsZero() bool { return d == Delay{} }

// FromNs returns the delay of a number of ns for a round trip, and a jitter in ns.
func FromNs(tripNs, jitterNs int64) Delay {
	return Delay{time.Duration(tripNs), time.Duration(jitterNs)}
}

// String returns the delay as Parse reads it.
func (d Delay) String() string {
	switch {
	case d.IsZero():
		return None
	case d.Jitter == 0:
		return fmt.Sprintf("delay %v", d.RoundTrip)
	}
	return fmt.Sprintf("delay %v ± %v", d.RoundTrip, d.Jitter)
}

// OneWay returns the time in ns that draw k adds in one direction, a pure function of seed and k.
func (d Delay) OneWay(seed, k uint64) int64 {
	half := int64(d.RoundTrip) / 2
	if d.Jitter == 0 {
		return half
	}
	return half + int64(pace.Below(seed, k, uint64(d.Jitter)+1)) - int64(d.Jitter)/2
}

// MarshalText implements encoding.TextMarshaler.
func (d Delay) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Delay) UnmarshalText(text []byte) (err error) {
	*d, err = Parse(string(text))
	return err
}
