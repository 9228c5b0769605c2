package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/trial/processes"
)

// serveAlso lets a stand-in listen on a further port from its variable; "+1" is the one after
// $PORT.
func serveAlso(port string) {
	if port == "+1" {
		own, err := strconv.Atoi(os.Getenv("PORT"))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		port = strconv.Itoa(own + 1)
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	further = l
}

// further keeps a port open: a listener that is not referenced ends with the next collection.
var further net.Listener

// Targets that run side by side and listen on one port are refused before any measurement, with
// both names, the port and what to type. Ports that follow from $PORT are valid, and so are fixed
// ones of targets that take turns.
func TestFixedPorts(t *testing.T) {
	testsets.Once(t, "fixed ports of a user's services", testsets.Needs{})
	ownFolder(t)
	port, err := processes.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	check := func(exit int, wants []string, args ...string) {
		t.Helper()
		stdout, stderr, got := versus(t, append(args, "--get", "/", "-n", "a", "-n", "b",
			"--plan")...)
		if got != exit {
			t.Errorf("%q: exit %d, want %d:\n%s%s", args, got, exit, stdout, stderr)
		}
		for _, want := range wants {
			has(t, fmt.Sprint(args), stdout+stderr, strings.ReplaceAll(want, "P", fmt.Sprint(port)))
		}
	}
	fixed, also := fmt.Sprintf("PORT=%d ./app", port), fmt.Sprintf("ALSO=%d ./app", port)
	check(cli.Failed, []string{"a, b: all of these targets listen on port P and ignore $"},
		fixed, fixed+" x")
	check(cli.Failed, []string{"a: the service responds on port P instead of $",
		"If its port is fixed, set --port P (in prony.yaml: port)"}, fixed, "./app")
	if l, err := net.Listen("tcp", "[::1]:0"); err == nil {
		_ = l.Close()
		check(cli.Failed, []string{"a: the service listens on [::1]:", ": configure it to listen " +
			"on 127.0.0.1"}, "AT=::1 ./app", "./app")
	}
	both := []string{"with ", ": both listen on port P in addition to $", "--interleave blocks"}
	check(cli.Failed, append(both, "compare a with b"), also, also+" x", "--aa=false")
	check(cli.Failed, append(both, "compare a with a-again", "--aa=false"), also, "./app")
	check(cli.Fine, []string{" starts"}, also, "./app", "--aa=false")
	check(cli.Fine, []string{" blocks"}, also, also+" x", "--interleave", "blocks")
	check(cli.Fine, []string{" starts"}, "ALSO=+1 ./app", "ALSO=+1 ./app x")
	stdout, stderr, got := inProject(t, fmt.Sprintf("targets: {a: {command: ALSO=%[1]d ./app}, "+
		"b: {command: ALSO=%[1]d ./app x}}\n%[2]s", port, requests), "run")
	if got != cli.Failed || !strings.Contains(stderr, "compare a with b: both listen on port") {
		t.Errorf("a project: exit %d:\n%s%s", got, stdout, stderr)
	}
}
