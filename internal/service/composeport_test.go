package service

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestComposer checks which command of Compose is taken: the first one that is installed, starts,
// and is not of version 1.
func TestComposer(t *testing.T) {
	check := func(docker, standalone string, want ...string) {
		t.Helper()
		bin := t.TempDir()
		programs := map[string]string{"docker": docker, "docker-compose": standalone}
		for name, script := range programs {
			if script == "" {
				continue
			}
			program := []byte("#!/bin/sh\n" + script + "\n")
			if err := os.WriteFile(filepath.Join(bin, name), program, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("PATH", bin)
		got, err := composer(t.Context())
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("docker %q, docker-compose %q: %q, %v; want %q", docker, standalone, got, err,
				want)
		}
	}
	const plugin, none = `[ "$1" = compose ] && echo 2.32.1`, "exit 125"
	check(plugin, "echo 2.1.0", "docker", "compose")
	check("", "echo 2.1.0", "docker-compose")
	check(none, "echo v2.1.0", "docker-compose")
	check(none, "echo 1.29.2")
	check(none, none)
	check(none, "")
	check("", "")
}

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
