package service

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"slices"
)

// headlines are the requests of each contract that suites measure, as the golden answers have them.
// A target's answers to them are what readers of a table compare, so they are looked at more
// closely: asked as every other client, and their heads are reported.
var headlines = map[string][]string{
	"hello":     {"GET /hello/{mode}?key=1"},
	"http":      {"GET /hello", "GET /file?size=1024"},
	"compute":   {"GET /data"},
	"petclinic": {"GET /api/vet/vets"},
}

// Headlines are the requests that suites measure, with {mode} left open, each contract's together.
func Headlines() (requests []string) {
	for _, name := range []string{"hello", "http", "compute", "petclinic"} {
		requests = append(requests, headlines[name]...)
	}
	return requests
}

// Head is what the answer to a measured request looks like on the wire. Bodies are the contract's;
// heads are the framework's own business, and part of what a request costs.
type Head struct {
	Request   string   // as "GET /hello/{mode}?key=1", with the mode left open
	HeadBytes int64    // status line, headers and the empty line after them
	BodyBytes int64    // as Content-Length says
	Headers   []string // names in canonical form, sorted, each once
	Kept      bool     // the connection took another request
}

func newHead(template string, a answered) Head {
	names := slices.Collect(maps.Keys(a.Header))
	slices.Sort(names)
	return Head{Request: template, HeadBytes: a.headBytes, BodyBytes: a.ContentLength,
		Headers: names, Kept: !a.Close}
}

// draw is a rule that holds for more values than the golden answers can name.
type draw struct {
	lo, hi int64
	times  int // in a whole check; once in a quick one
	make   func(n int64) goldenCase
}

// draws catch a service that knows the golden answers and nothing else.
var draws = map[string][]draw{
	"hello": {{1, 50000, 8, func(n int64) goldenCase {
		body := fmt.Sprintf("Hello from REST value-%d", n)
		return goldenCase{Request: fmt.Sprintf("GET /hello/{mode}?key=%d", n), Status: 200,
			Type: "text/plain", Body: &body}
	}}},
	callForm + "hello": {{10000, 50000, 8, func(n int64) goldenCase {
		body := fmt.Sprintf("\n\x1bHello from REST value-%d", n) // 27 bytes in field 1
		return goldenCase{Request: "POST /prony.Hello/Say", Send: fmt.Sprintf("\n\x05%d", n),
			Status: 200, Body: &body}
	}}},
	"http": {
		{2, largeBytes, 2, func(n int64) goldenCase {
			return goldenCase{Request: fmt.Sprintf("GET /file?size=%d", n), Status: 200,
				Type: "application/octet-stream", Lorem: &n}
		}},
		{2, largeBytes / 2, 2, func(n int64) goldenCase {
			return goldenCase{Request: "POST /load", SendLorem: n, Status: 200,
				Type: "text/plain", Base64Lorem: &n}
		}},
	},
}

func (k *check) drawnCases(contractName string) []goldenCase {
	source := mathrand.New(mathrand.NewPCG(k.Seed, 0))
	var out []goldenCase
	for _, d := range draws[contractName] {
		times := d.times
		if k.quick {
			times = 1
		}
		for range times {
			c := d.make(d.lo + source.Int64N(d.hi-d.lo+1))
			c.Name = fmt.Sprintf("drawn with seed %d", k.Seed)
			out = append(out, c)
		}
	}
	return out
}

func freshSeed() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it does not fail, it ends the program
	return binary.LittleEndian.Uint64(b[:])
}
