package main

import (
	"strings"
	"testing"

	"prony.example/internal/base/cli"
)

// A plan for a precision lists its first starts, and how many more may follow.
func TestPlanForAPrecision(t *testing.T) {
	root := checkout(t)
	check := func(exit int, want string, args ...string) {
		t.Helper()
		out, said, got := say(t, mock{}, append([]string{"plan", "--root", root, "--targets",
			"go-nethttp,rust-axum"}, args...)...)
		if got != exit || !strings.Contains(out+said, want) {
			t.Errorf("%v: exit %d, want %d; it says %s%swant %q", args, got, exit, out, said, want)
		}
	}
	check(cli.Fine, "8 trials in 4 starts, then up to 36 more starts for ± 1%", "--precision", "1%")
	check(cli.Fine, "10 trials in 5 starts, then more starts within 10m0s for ± 0.5%",
		"--precision",
		"0.5%", "--for", "10m", "--blocks", "5")
	check(cli.Misused, "--precision must be greater than 0, got 0%", "--precision", "0%")
	check(cli.Misused, `share "1" is not a percentage`, "--precision", "1")
	check(cli.Misused, "--precision must be less than 100%, got 100%", "--precision", "100%")
	check(cli.Misused, "--precision needs --blocks of at least 4, got 3", "--precision", "1%",
		"--blocks", "3")
	check(cli.Misused, "--precision needs slices: leave out --interleave blocks", "--precision",
		"1%", "--interleave", "blocks")
	check(cli.Misused, "which are not possible: limits.cpus is not a whole number", "--precision",
		"1%", "--cpus",
		"0.5")
}

func TestVersusPrecisionRefuses(t *testing.T) {
	ownFolder(t)
	for _, by := range []string{"p99", "capacity"} {
		_, said, exit := versus(t, "./app", "./app -x", "--get", "/", "--precision", "1%",
			"--by", by)
		if want := "--precision is possible only for CPU per request or throughput, not for --by " +
			"" + by; exit !=
			cli.Misused || !strings.Contains(said, want) {
			t.Errorf("exit %d: %s, want %q", exit, said, want)
		}
	}
}
