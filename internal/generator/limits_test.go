package generator

import (
	"strings"
	"testing"

	"prony.example/load"
	"prony.example/load/engine/nethttp"
)

// TestRoomHere checks that this machine's limits are read.
func TestRoomHere(t *testing.T) {
	if r := roomHere(); r.files < 1 || r.ports < 1 || r.memory < 1 {
		t.Errorf("%+v, want all three", r)
	}
}

// TestRoom checks which loads are refused before they open a connection.
func TestRoom(t *testing.T) {
	check := func(r room, connections, generators int, c *nethttp.Config, want string) {
		t.Helper()
		s := load.Spec{Connections: connections, Part: load.Part{Of: generators}}
		err := r.check(&s, c)
		if want == "" && err != nil || want != "" && (err == nil ||
			!strings.Contains(err.Error(), want)) {
			t.Errorf("%+v, %d connections: %v, want %q", r, connections, err, want)
		}
	}
	h2 := &nethttp.Config{Protocol: nethttp.H2, Streams: 10}
	check(room{}, 1_000_000, 0, nil, "")      // nothing is known
	check(room{files: 1024}, 960, 0, nil, "") // 960 + 64
	check(room{files: 1024}, 961, 0, nil, "ulimit -n 1025, or use at most 960 connections")
	check(room{files: 1024}, 1920, 2, nil, "") // 960 for each generator
	check(room{files: 1024}, 1921, 2, nil, "961 connections need 1025 open files")
	check(room{files: 1024}, 9600, 0, h2, "") // 10 on each connection
	check(room{files: 1024}, 9610, 0, h2, "961 connections")
	check(room{files: 1024}, 9610, 0, &nethttp.Config{Protocol: nethttp.H3}, "")
	check(room{files: 100_000, ports: 28_232}, 28_232, 0, nil, "")
	check(room{files: 100_000, ports: 28_232}, 28_233, 0, nil, "use at most 28232 connections")
	check(room{files: 100_000, ports: 28_232}, 28_233, 0,
		&nethttp.Config{Protocol: nethttp.H1Unix}, "")
	check(room{memory: 100 << 20}, 20_480, 0, nil, "") // 100 MiB / 5 KiB
	check(room{memory: 100 << 20}, 20_481, 0, nil, "20481 connections need at least 100 MiB "+
		"of memory, but 100 MiB are free: use at most 20480 connections")
	check(room{memory: 21 << 20}, 10_240, 0, h2, "") // 1,024 with 10 streams each
	check(room{memory: 21 << 20}, 10_250, 0, h2, "use at most 10240 connections")
	check(room{memory: 21 << 20}, 2048, 2, &nethttp.Config{}, "")
}
