package service

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"slices"
)

// headlines are the requests of each contract that suites measure, as in the golden answers. Tables
// compare the answers to them, so the check repeats them as every other client and reports their
// heads.
var headlines = map[string][]string{
	"hello":     {"GET /hello/{mode}?key=1"},
	"http":      {"GET /hello", "GET /file?size=1024"},
	"compute":   {"GET /data"},
	"petclinic": {"GET /api/vet/vets"},
}

// Headlines returns the requests that suites measure, with {mode} as placeholder, by contract.
func Headlines() (requests []string) {
	for _, name := range []string{"hello", "http", "compute", "petclinic"} {
		requests = append(requests, headlines[name]...)
	}
	return requests
}

// Head describes the head of the answer to a measured request. The contract defines bodies; heads
// depend on the framework and are part of a request's cost.
type Head struct {
	Request   string   // such as "GET /hello/{mode}?key=1", with {mode} as placeholder
	HeadBytes int64    // status line, headers and the empty line after them
	BodyBytes int64    // from Content-Length
	Headers   []string // names in canonical form, sorted, without duplicates
	Kept      bool     // the connection accepted another request
}

func newHead(template string, a answered) Head {
	names := slices.Collect(maps.Keys(a.Header))
	slices.Sort(names)
	return Head{Request: template, HeadBytes: a.headBytes, BodyBytes: a.ContentLength,
		Headers: names, Kept: !a.Close}
}

// draw makes random cases of a rule, for more values than the golden answers can list.
type draw struct {
	lo, hi int64
	times  int // in a full check; once in a quick one
	make   func(n int64) goldenCase
}

// draws detect a service that only has the golden answers.
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
	_, _ = rand.Read(b[:]) // it does not fail but ends the program
	return binary.LittleEndian.Uint64(b[:])
}
