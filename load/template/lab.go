package template

import (
	"bytes"
	"errors"
	"slices"
)

// What the lab itself varies from trial to trial, and what a service may quote in its answer. The
// address is known before a load begins, and held byte for byte; the source port is the kernel's,
// another one for each connection: any port will do.
const (
	LabHost   = "host"   // the Host field of the request
	LabPort   = "port"   // of the address that is asked
	LabSource = "source" // port that the connection comes from
)

// portDigits is the length of the longest port.
const portDigits = 5

func newLab(args string) (part, error) {
	if !slices.Contains([]string{LabHost, LabPort, LabSource}, args) {
		return part{}, errors.New("it wants host, port or source")
	}
	return part{kind: labKind, name: args}, nil
}

// Lab is the first placeholder of what the lab varies, which only an answer can have: what it is
// held against. "": there is none.
func (t *Text) Lab() string {
	for i := range t.parts {
		if t.parts[i].kind == labKind {
			return "{lab " + t.parts[i].name + "}"
		}
	}
	return ""
}

// At gives the text of answers of a service that is asked by this Host at this port.
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

// Pattern is a text all of which is known but source ports. It is read-only and may be shared
// between threads.
type Pattern struct {
	Literal []byte
	gaps    []int // where in it one stands, ascending
}

// Pattern gives it; nil where there is no source port, or something else that varies.
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

// Place is how far an answer has been held against a pattern. Zero: nothing of it.
type Place struct {
	At     int // bytes of the literal
	gap    int // gaps that are behind
	digits int // of the one that it is in
}

// Next holds the next piece of an answer against the pattern and gives how many of its bytes are as
// they should be. It does not allocate.
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
			return same // more than there should be
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

// Whole reports whether an answer that ends here is all of the pattern.
func (p *Pattern) Whole(place *Place) bool {
	behind := place.gap
	if place.digits > 0 {
		behind++
	}
	return place.At == len(p.Literal) && behind == len(p.gaps)
}

// Is reports whether a whole value is the pattern.
func (p *Pattern) Is(got []byte) bool {
	var place Place
	return p.Next(&place, got) == len(got) && p.Whole(&place)
}
