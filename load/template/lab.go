package template

import (
	"bytes"
	"errors"
	"slices"
)

// Values that Prony varies from trial to trial, and that a service can quote in its response. Host
// and port are known before a load begins and compared byte for byte. The source port is chosen by
// the kernel for each connection, so any port matches.
const (
	LabHost   = "host"   // the Host field of the request
	LabPort   = "port"   // of the target's address
	LabSource = "source" // the client port of the connection
)

// portDigits is the length of the longest port.
const portDigits = 5

func newLab(args string) (part, error) {
	if !slices.Contains([]string{LabHost, LabPort, LabSource}, args) {
		return part{}, errors.New("it wants host, port or source")
	}
	return part{kind: labKind, name: args}, nil
}

// Lab returns the text's first {lab …} placeholder, which only expected responses can have; "" if
// it has none.
func (t *Text) Lab() string {
	for i := range t.parts {
		if t.parts[i].kind == labKind {
			return "{lab " + t.parts[i].name + "}"
		}
	}
	return ""
}

// At returns the text for a service that gets requests with this Host at this port.
func (t *Text) At(host, port string) *Text {
	out, err := t.filled(func(p *part) (string, bool, error) {
		byName := map[string]string{LabHost: host, LabPort: port}
		value, ok := byName[p.name]
		return value, ok && p.kind == labKind, nil
	})
	if err != nil {
		panic("what the lab gave is known: " + err.Error())
	}
	return out
}

// Pattern is a text that is constant except for source ports. It is read-only and may be shared
// between threads.
type Pattern struct {
	Literal []byte
	gaps    []int // positions of ports in Literal, ascending
}

// Pattern returns the pattern, or nil if the text has no source port or anything else that varies.
func (t *Text) Pattern() *Pattern {
	p := &Pattern{}
	for i := range t.parts {
		if t.parts[i].kind != labKind || t.parts[i].name != LabSource {
			return nil
		}
		p.Literal = append(p.Literal, t.parts[i].before...)
		p.gaps = append(p.gaps, len(p.Literal))
	}
	if len(p.gaps) == 0 {
		return nil
	}
	p.Literal = append(p.Literal, t.tail...)
	return p
}

// Place is the position in a pattern up to which a response was compared. Zero: nothing yet.
type Place struct {
	At     int // bytes of the literal
	gap    int // gaps already passed
	digits int // digits read of the current gap
}

// Next compares the next piece of a response with the pattern and returns how many of its bytes
// match. It does not allocate.
func (p *Pattern) Next(place *Place, piece []byte) (same int) {
	for same < len(piece) {
		end := len(p.Literal)
		if place.gap < len(p.gaps) {
			end = p.gaps[place.gap]
		}
		if place.At == end && place.gap < len(p.gaps) {
			if b := piece[same]; '0' <= b && b <= '9' && place.digits < portDigits {
				place.digits++
				same++
				continue
			}
			if place.digits == 0 {
				return same
			}
			place.gap, place.digits = place.gap+1, 0
			continue
		}
		n := min(len(piece)-same, end-place.At)
		if n == 0 {
			return same // more bytes than expected
		}
		if !bytes.Equal(piece[same:same+n], p.Literal[place.At:place.At+n]) {
			for piece[same] == p.Literal[place.At] {
				same, place.At = same+1, place.At+1
			}
			return same
		}
		same, place.At = same+n, place.At+n
	}
	return same
}

// Whole reports whether a response that ends here matches all of the pattern.
func (p *Pattern) Whole(place *Place) bool {
	behind := place.gap
	if place.digits > 0 {
		behind++
	}
	return place.At == len(p.Literal) && behind == len(p.gaps)
}

// Is reports whether a complete value matches the pattern.
func (p *Pattern) Is(got []byte) bool {
	var place Place
	return p.Next(&place, got) == len(got) && p.Whole(&place)
}
