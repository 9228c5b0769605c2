package load

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/load/pace"
	"prony.example/record"
)

// numbered responds to request k after a time that depends only on k, so that a request gives the
// same sample for any sender.
func numbered(c call) reply {
	var k uint64
	if _, err := fmt.Sscanf(c.text, "GET /%d ", &k); err != nil {
		panic(c.text)
	}
	if k%997 == 13 {
		return reply{after: time.Millisecond, pieces: []string{
			"HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\nno"}}
	}
	return answer(100*time.Microsecond+time.Duration(pace.Below(7, k, 3_000_000)), "ok")
}

// shared is a load to be divided into parts. It has enough connections that no request waits.
func shared(model string) Spec {
	s := Spec{Name: "x", Model: model, Connections: 64, Lead: 100 * time.Millisecond, Seed: 5,
		Window: time.Second, Drain: time.Second, Timeout: time.Second,
		Trace: Trace{Share: 0.05, Salt: 3}, Every: 300 * time.Millisecond,
		Schedule: at(pace.Poisson, 3000)}
	s.Scenario.Requests = []Request{{Method: "GET", Path: "/{seq}", WantSize: 2, Weight: 3},
		{Method: "GET", Path: "/{seq}", Name: "other", WantSize: 2}}
	s.Address = netip.MustParseAddrPort("127.0.0.1:1")
	return s
}

// divided runs a load as n generators with several threads, one after the other, and returns when
// requests left, by number, from the beginning of the lead-in. change can modify each part before.
func divided(t *testing.T, s Spec, n, threads int, change func(*Spec)) ([]*Result,
	map[uint64]int64) {
	t.Helper()
	var all []*Result
	left := map[uint64]int64{}
	for i := range n {
		part := s
		part.Part, part.Cores = Part{i, n}, make([]int, threads)
		w := &world{serve: numbered, // each opens its window at a different moment
			connect: func(int) (time.Duration, error) { return time.Duration(7*i) * 1e6, nil }}
		part.Engine = w.engine
		if change != nil {
			change(&part)
		}
		r := good(t, w, part)
		for _, c := range w.calls {
			var k uint64
			if _, err := fmt.Sscanf(c.text, "GET /%d ", &k); err != nil {
				t.Fatal(err)
			}
			if _, twice := left[k]; twice {
				t.Fatalf("request %d was sent by two", k)
			}
			left[k] = c.at - r.FromNs + int64(s.Lead)
		}
		all = append(all, r)
	}
	return all, left
}

// The sent arrivals, in the order of the schedule, have the schedule's hash for any number of
// generators and threads; and every request is the same.
func TestPartsAreOneSchedule(t *testing.T) {
	testsets.Whole(t, "many simulated loads")
	s := shared(record.Open)
	want := pace.Hash(s.whole(), int64(s.Lead+s.Window))
	for _, n := range []struct{ generators, threads int }{{1, 1}, {2, 1}, {4, 1}, {3, 2}} {
		all, left := divided(t, s, n.generators, n.threads, nil)
		h := fnv.New64a()
		for k := range uint64(len(left)) {
			at, ok := left[k]
			if !ok {
				t.Fatalf("%v: request %d of %d was not sent", n, k, len(left))
			}
			h.Write(binary.LittleEndian.AppendUint64(nil, uint64(at)))
		}
		if got := fmt.Sprintf("%016x", h.Sum64()); got != want {
			t.Errorf("%v: hash of what was sent %s, want %s", n, got, want)
		}
		hashes := pace.Hashes(s.whole(), n.generators, int64(s.Lead+s.Window))
		for i, r := range all {
			if r.TraceHash != hashes[i] {
				t.Errorf("%v: part %d hashes to %s, want %s", n, i, r.TraceHash, hashes[i])
			}
		}
	}
}

// Closed loads divide connections, users, turns and slow clients.
func TestPartsDivide(t *testing.T) {
	s := shared(record.Closed)
	s.Schedule, s.Requests, s.Connections = pace.Schedule{}, 1001, 7
	all, _ := divided(t, s, 3, 2, nil)
	turns, threads := int64(0), 0
	for _, r := range all {
		turns += r.Answered + r.Errors.Total()
		threads += r.Threads
	}
	if turns != 1001 || threads != 6 {
		t.Errorf("%d requests by %d threads", turns, threads)
	}
	for total := range 30 {
		for n := range 5 {
			sum := int64(0)
			for i := range n {
				sum += max(Part{i, n}.share(int64(total)), 0)
			}
			if n > 0 && sum != int64(total) {
				t.Errorf("%d parts of %d are %d", n, total, sum)
			}
		}
	}
	check := func(part Part, want string) {
		t.Helper()
		x := shared(record.Open)
		x.Part, x.Connections = part, 3
		if _, err := simulate(t, &world{serve: numbered}, x); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("part %v: %v, want %s", part, err, want)
		}
	}
	check(Part{2, 2}, "part 2 of 2 is none")
	check(Part{-1, 2}, "part -1 of 2 is none")
	check(Part{0, 4}, "3 connections for 4 generators; each needs one")
}

// Only an open load whose connections carry one request at a time may open more of them than it
// begins with, up to the limit on open files.
func TestMostConnections(t *testing.T) {
	files, err := RaiseFiles()
	if err != nil || filesMost() != files {
		t.Fatalf("the limit is %d, but was raised to %d, error %v", filesMost(), files, err)
	}
	check := func(s Spec, want int) {
		t.Helper()
		if got := (&run{spec: s}).most(); got != want {
			t.Errorf("%s of %d to %d, part %+v, %d streams: %d, want %d", s.Model, s.Connections,
				s.Most, s.Part, s.Describe.Streams, got, want)
		}
	}
	check(Spec{Model: record.Closed, Connections: 8, Most: 9}, 8)
	check(Spec{Model: record.Open, Connections: 8}, 8)
	check(Spec{Model: record.Open, Connections: 8, Most: 7}, 8)
	if files > 0 && files < 2*filesLeft { // none are left for further connections
		return
	}
	more, left := 9, int(min(files, math.MaxInt32))-filesLeft
	if files == 0 { // unknown
		more, left = 8, 8
	}
	check(Spec{Model: record.Open, Connections: 8, Most: 9}, more)
	check(Spec{Model: record.Open, Connections: 16, Most: 18, Part: Part{Index: 1, Of: 2}}, more)
	check(Spec{Model: record.Open, Connections: 8, Most: math.MaxInt}, left)
	check(Spec{Model: record.Open, Connections: 8, Most: 9,
		Describe: EngineInfo{Streams: 2}}, 8)
}

// Threads share whole connections, each with all its streams. Users have the same numbers as
// without threads.
func TestThreadsShareConnections(t *testing.T) {
	check := func(slots, streams, threads, connections int, want ...int) {
		t.Helper()
		w := &world{serve: after(time.Millisecond)}
		r := good(t, w, Spec{Model: record.Closed, Connections: slots, Cores: make([]int, threads),
			Describe: EngineInfo{Protocol: "HTTP/2", Streams: streams},
			Users:    users(pace.Flat(float64(slots)), Think{Kind: "constant", Lo: time.Minute})})
		var got []int
		for _, e := range w.engines {
			got = append(got, len(e.slots))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) || r.Connections != connections || r.Scheduled != int64(slots) {
			t.Errorf("%d streams of %d on a connection, %d threads: %d, %d connections, %d users",
				slots, streams, threads, got, r.Connections, r.Scheduled)
		}
	}
	check(64, 16, 3, 4, 16, 16, 32)
	check(15, 10, 1, 2, 15)
	check(15, 10, 2, 2, 5, 10)
	check(15, 5, 2, 3, 5, 10)
	check(5, 10, 2, 1, 5)
	check(5, 1, 2, 5, 2, 3)
}

// Users spread over all connections before two share one.
func TestUsersSpreadOverConnections(t *testing.T) {
	check := func(slots, streams, threads, active int, want ...int) {
		t.Helper()
		w := &world{serve: after(time.Millisecond)}
		good(t, w, Spec{Model: record.Closed, Connections: slots, Cores: make([]int, threads),
			Describe: EngineInfo{Protocol: "HTTP/2", Streams: streams}, Users: users(
				pace.Flat(float64(active)), Think{Kind: "constant", Lo: time.Minute})})
		var got []int // users by connection
		for _, e := range w.engines {
			byConn := make([]int, (len(e.slots)+streams-1)/streams)
			for i := range e.slots {
				byConn[i/streams] += e.slots[i].onConn // requests, one for each user
			}
			got = append(got, byConn...)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%d users, %d streams of %d, %d threads: %d by connection, want %d", active,
				slots, streams, threads, got, want)
		}
	}
	check(40, 10, 1, 4, 1, 1, 1, 1)
	check(40, 10, 3, 6, 1, 1, 2, 2)
	check(15, 10, 1, 15, 5, 10)
	check(15, 10, 2, 12, 5, 7)
	check(5, 1, 2, 3, 0, 0, 1, 1, 1)
}

// All streams of a connection report its end.
func TestReconnectsOfSlices(t *testing.T) {
	r := &run{spec: Spec{Describe: EngineInfo{Streams: 4}}, workers: []*worker{
		{book: &book{renewed: 4}}, {book: &book{renewed: 5}}}}
	if n := (&Loader{run: r}).Reconnects(); n != 3 {
		t.Errorf("9 ends of streams are %d ends of connections with 4 each, want 3", n)
	}
}
