package service

import "testing"

// TestPortOf checks that only a single TCP port of a Compose file is taken without a question.
func TestPortOf(t *testing.T) {
	check := func(want int, ports []composedPort, expose ...string) {
		t.Helper()
		port, err := portOf(ports, expose)
		if port != want || (err == nil) != (want > 0) {
			t.Errorf("%+v, %q: port %d, error %v, want %d", ports, expose, port, err, want)
		}
	}
	check(80, []composedPort{{80, "tcp"}})
	check(80, []composedPort{{80, ""}, {53, "udp"}}, "80", "80/tcp", "9000/udp")
	check(8080, nil, "8080")
	check(0, nil, "8000-8009")
	check(0, nil, "53/udp")
	check(0, []composedPort{{80, "tcp"}}, "81")
	check(0, nil)
}
