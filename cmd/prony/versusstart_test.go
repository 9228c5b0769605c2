package main

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/trial/processes"
)

// versusPlan runs versus --plan with a command, and returns what it says and its exit code.
func versusPlan(t *testing.T, args ...string) (says string, exit int) {
	t.Helper()
	stdout, stderr, exit := versus(t, append(args, "--get", "/", "--plan", "--blocks", "2")...)
	return stdout + stderr, exit
}

// A service that is not ready is described with what to type: a status other than 200, another
// address, a fixed port.
func TestVersusNamesWhatToType(t *testing.T) {
	testsets.Whole(t, "whole comparisons")
	testsets.Live(t)
	ownFolder(t)
	check := func(wants []string, args ...string) {
		t.Helper()
		says, exit := versusPlan(t, append(args, "--startup", "3s")...)
		if exit != cli.Failed {
			t.Errorf("%q: exit %d, want %d", args, exit, cli.Failed)
		}
		has(t, args[0], says, wants...)
	}
	check([]string{"last: status 302 (Location: /login)", "--ready /health, or --ready - to wait"},
		"STATUS=302 ./app")
	check([]string{"last: status 404", "If the service is ready with this status", "--ready -"},
		"STATUS=404 ./app")
	if l, err := net.Listen("tcp", "[::1]:0"); err == nil {
		_ = l.Close()
		check([]string{"its processes listen on [::1]:"}, "AT=::1 ./app")
	}
}

// A service whose responses take long is reported before it is measured, with what to type.
func TestVersusOfASlowService(t *testing.T) {
	testsets.Live(t)
	ownFolder(t)
	says, exit := versusPlan(t, "SPIN=60ms ./app", "--aa=false", "--cpus", "1")
	if exit != cli.Fine {
		t.Errorf("exit %d", exit)
	}
	has(t, "what is said", says, "GET / takes ", " alone, so 64 connections wait up to ",
		"use --connections ", " --measure 10s")
}

// A service with a fixed port is compared in turns, if the port is named; a port in use is refused.
func TestVersusOfAFixedPort(t *testing.T) {
	testsets.Live(t)
	ownFolder(t)
	port, err := processes.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	at := strconv.Itoa(port)
	says, exit := versusPlan(t, "PORT="+at+" ./app", "PORT="+at+" ./app x", "--port", at)
	if exit != cli.Fine {
		t.Errorf("exit %d", exit)
	}
	has(t, "the plan", says, "6 trials in 2 blocks", "several targets listen on the fixed port "+at)
	l, err := net.Listen("tcp", "127.0.0.1:"+at)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	says, exit = versusPlan(t, "PORT="+at+" ./app", "--port", at)
	if exit != cli.Failed {
		t.Errorf("exit %d, want %d", exit, cli.Failed)
	}
	has(t, "a port in use", says, "the service's fixed port "+at+" is in use")
}

// A service that writes into the user's folder is reported; one that is built has a fresh copy of
// its folder in each start, in which it may write, also as another user.
func TestVersusAndWrittenFiles(t *testing.T) {
	testsets.Live(t)
	ownFolder(t)
	if err := os.Mkdir("data", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod("data", 0o777); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	says, exit := versusPlan(t, "echo x >> data/starts; exec ./app")
	if exit != cli.Fine {
		t.Errorf("exit %d", exit)
	}
	has(t, "what is said", says, "writes into its folder (data/starts), so each start finds")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := "mkdir new; SAYS=$(ls -d new*) PRONY_TEST_SERVE=hello exec " + self
	says, exit = versusPlan(t, "-n", "a", "-n", "b", "--git", "HEAD", "--git", "HEAD", "--build",
		"true", "--run", run, "--interleave", "blocks")
	if exit != cli.Fine || strings.Contains(says, "writes into") {
		t.Errorf("exit %d\n%s", exit, says)
	}
}

// A service that dies because it runs as an unprivileged user is reported with the user and the
// flag that changes it.
func TestVersusAsMe(t *testing.T) {
	testsets.Live(t)
	if os.Geteuid() != 0 {
		t.Skip("only root starts services as another user")
	}
	dir := ownFolder(t)
	for _, path := range []string{dir, strings.TrimSuffix(dir, "/001")} {
		if err := os.Chmod(path, 0o755); err != nil { // otherwise only root enters it
			t.Fatal(err)
		}
	}
	says, exit := versusPlan(t, "mkdir data && exec ./app")
	if exit != cli.Failed || strings.Contains(says, "must listen on") {
		t.Errorf("exit %d\n%s", exit, says)
	}
	has(t, "what is said", says, "starts services as user nobody", "--as-me")
	says, exit = versusPlan(t, "mkdir data && exec ./app", "--as-me", "--aa=false")
	if exit != cli.Fine {
		t.Errorf("as root: exit %d\n%s", exit, says)
	}
}
