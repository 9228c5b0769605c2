package clock

import "math"

// Offset is how far another process's clocks, or another machine's, are ahead of this one's, in ns.
type Offset struct {
	MonoNs, WallNs int64
	ErrorNs        int64 // half of the round trip: wherever in it the clocks were read
}

// Against asks for another's clocks so many times. Of the answers the quickest counts (RFC 5905,
// section 8). Ask says what they showed, and when, by Mono, that was heard.
func Against(times int, ask func() (mono, wall, heard int64, err error)) (o Offset, err error) {
	o.ErrorNs = math.MaxInt64
	for range times {
		before, date := Mono(), Wall().UnixNano()
		mono, wall, heard, err := ask()
		if err != nil {
			return Offset{}, err
		}
		if half := (heard - before + 1) / 2; half < o.ErrorNs {
			o = Offset{mono - before - half, wall - date - half, half}
		}
	}
	return o, nil
}
