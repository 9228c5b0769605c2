package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"prony.example/internal/suite/adhoc"
)

// TestCheckPorts refuses targets that would run side by side with the same further port.
func TestCheckPorts(t *testing.T) {
	again := "b" + adhoc.AgainSuffix
	check := func(suiteText string, ports Ports, want, hint string) {
		t.Helper()
		l := &Lab{World: simulated{}, Tell: &listener{}}
		err := l.CheckPorts(wholeWish(t, suiteText, "a", "b", again), ports)
		got := fmt.Sprint(err)
		if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, hint) {
			t.Errorf("%v: %s, want %s … %s", ports, got, want, hint)
		}
	}
	const turns = "--interleave blocks"
	check(slicedSuite, nil, "<nil>", "<nil>")
	check(slicedSuite, Ports{"a": {9000, 9001}, "b": {9002}, again: {9003}}, "<nil>", "<nil>")
	check(slicedSuite, Ports{"a": {9000, 9001}, "b": {9001}},
		"compare a with b: both listen on port 9001", turns)
	check(slicedSuite, Ports{"a": {9000}, again: {9000}},
		"compare a with "+again+": both listen on port 9000", turns)
	check(slicedSuite, Ports{"b": {9000}, again: {9000}}, "compare b with "+again, "--aa=false")
	check(wholeSuite, Ports{"a": {9000}, "b": {9000}}, "<nil>", "<nil>")
}

// TestJoinStrays makes one error of targets that respond on the same port instead of their own.
func TestJoinStrays(t *testing.T) {
	addr := netip.MustParseAddrPort("127.0.0.1:8080")
	stray := func(name string, port int) error {
		return fmt.Errorf("check %s: %w", name, &strayError{name, addr, port, 8080})
	}
	other := errors.New("start c: killed")
	check := func(want string, errs ...error) {
		t.Helper()
		err := errors.Join(errs...)
		if got := fmt.Sprint(joinStrays(err)); !strings.HasPrefix(got, want) {
			t.Errorf("%v: %s, want %s", errs, got, want)
		}
	}
	check("start a, b: all of these targets listen on port 3000 and ignore $PORT",
		stray("a", 3000), other, fmt.Errorf("twice: %w", errors.Join(stray("b", 3000))))
	check("check a: the service responds on port 3000 instead of $PORT, which is 8080",
		stray("a", 3000), stray("b", 3001))
	check("start c: killed", other)
}
