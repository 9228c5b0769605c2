package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// brief is a command line with short trials, whose numbers do not matter.
var brief = []string{"--get", "/", "-c", "2", "--aa=false", "--blocks", "1", "--measure",
	"300ms", "--warmup", "300ms", "--out", "r"}

// one returns the single record of the run in r.
func one(t *testing.T, says string) *record.Record {
	t.Helper()
	_, records, bad, err := record.Read("r")
	if err != nil || len(bad) > 0 || len(records) != 1 || records[0].Outcome != record.Measured ||
		len(records[0].Loads) == 0 {
		t.Fatalf("records %+v, bad %v, error %v\n%s", records, bad, err, says)
	}
	return records[0]
}

// Another machine's service is measured without data of its processes, which is reported once, and
// never shown as 0. A network of its own has the address of another machine.
func TestVersusOfAnotherMachine(t *testing.T) {
	testsets.Once(t, "a service of another machine", testsets.Needs{})
	ownFolder(t)
	own := "-n"
	if os.Geteuid() != 0 {
		own = "-Urn"
	}
	const script = `ip link set lo up && ip route add local 198.51.100.0/24 dev lo || exit 70
SPEAKS=https AT=198.51.100.7 PORT=8081 ./app & service=$!
for i in $(seq 100); do grep -q 076433C6:1F91 /proc/net/tcp && break; sleep 0.1; done
PRONY_TEST_MAIN=1 PRONY_BESIDE=1 "$0" versus -n far --url https://198.51.100.7:8081 -k "$@"
exit=$?; kill $service; exit $exit`
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{own, "sh", "-c", script, self, "--remote", "198.51.100.7"}, brief...)
	cmd := exec.Command("unshare", args...)
	out, err := cmd.CombinedOutput()
	code := cmd.ProcessState.ExitCode()
	if code == 70 || strings.Contains(string(out), "unshare failed") {
		t.Skipf("no network of its own can be made here: %s", out)
	}
	if code != cli.Fine && code != cli.Invalid {
		t.Fatalf("%v\n%s", err, out)
	}
	r := one(t, string(out))
	l := r.Loads[0]
	if l.Protocol != "HTTP/1.1 over TLS" || l.Done == 0 || l.Errors.Total() != 0 {
		t.Errorf("spoke %q, %d answers, errors %+v", l.Protocol, l.Done, l.Errors)
	}
	if s := l.Service; s.CPUNs != -1 || s.RSSMaxBytes != -1 || s.ThreadsMax != -1 ||
		s.NetworkBytes != -1 || s.NetworkBytesPerRequest != -1 {
		t.Errorf("what cannot be seen: %+v", s)
	}
	if n := strings.Count(strings.Join(strings.Fields(string(out)), " "),
		"the service was not sampled in that window"); n != 1 {
		t.Errorf("it says %d times that the costs cannot be seen:\n%s", n, out)
	}
}

// Requests to a service contain the name in its URL, before and under load, with TLS and without.
func TestVersusAsksByName(t *testing.T) {
	testsets.Once(t, "a service that is asked by its name", testsets.Needs{})
	var host string
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != host {
			http.Error(w, "there is no "+r.Host, http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, "ok")
	})
	for scheme, start := range map[string]func(http.Handler) *httptest.Server{
		"http": httptest.NewServer, "https": httptest.NewTLSServer,
	} {
		t.Run(scheme, func(t *testing.T) {
			ownFolder(t)
			server := start(answer)
			defer server.Close()
			url := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
			host = strings.TrimPrefix(url, scheme+"://")
			args := append([]string{"--url", url}, brief...)
			if scheme == "https" {
				args = append(args, "-k")
			}
			_, stderr, exit := versus(t, args...)
			if exit != cli.Fine && exit != cli.Invalid {
				t.Fatalf("exit %d\n%s", exit, stderr)
			}
			if strings.Contains(stderr, "service on cores") { // Prony did not place it
				t.Errorf("it says where the service runs:\n%s", stderr)
			}
			if l := one(t, stderr).Loads[0]; l.Done == 0 || l.Errors.Total() != 0 {
				t.Errorf("%d answers, errors %+v", l.Done, l.Errors)
			}
		})
	}
}

// A service that ends in a window leaves an INVALID trial with the reason; those of the others, and
// its own that could not begin, follow in order.
func TestVersusOfWhatEnds(t *testing.T) {
	testsets.Once(t, "a URL whose service ends in a window", testsets.Needs{})
	dir := ownFolder(t)
	answer := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }
	ends := &http.Server{Handler: http.HandlerFunc(answer)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go ends.Serve(l) //nolint:errcheck // it is closed
	go func() {      // its first window is from 0.5 s to 2.5 s after the beginning of this step
		step := []byte(`-ends","step":"peak"`)
		for text := []byte(nil); !bytes.Contains(text, step) && t.Context().Err() == nil; {
			time.Sleep(10 * time.Millisecond)
			text, _ = os.ReadFile(filepath.Join(dir, "r", "progress.ndjson")) // missing at first
		}
		time.Sleep(1500 * time.Millisecond)
		_ = ends.Close()
	}()
	stays := httptest.NewServer(http.HandlerFunc(answer))
	defer stays.Close()
	_, stderr, exit := versus(t, "-n", "ends", "--url", "http://"+l.Addr().String(), "-n", "stays",
		"--url", stays.URL, "--get", "/", "-c", "2", "--aa=false", "--blocks", "2", "--interleave",
		"blocks",
		"--measure", "2s", "--warmup", "300ms", "--out", "r")
	_, records, bad, err := record.Read(filepath.Join(dir, "r"))
	if exit != cli.Invalid || err != nil || len(bad) > 0 || len(records) != 4 {
		t.Fatalf("exit %d, want %d; %d records, bad %v, error %v\n%s", exit, cli.Invalid,
			len(records), bad, err, stderr)
	}
	var why []string
	for _, r := range records {
		switch {
		case r.Target.Name == "stays":
			if r.Outcome != record.Measured {
				t.Errorf("what stays: %+v", r.Failure)
			}
		case r.Verdict.Grade == record.Invalid && r.Failure != nil:
			why = append(why, r.Failure.Error)
		default:
			t.Errorf("what ended is %s: %+v", r.Verdict.Grade, r.Verdict.Findings)
		}
	}
	has(t, "the causes", strings.Join(why, "\n"), "load half: no connection to ",
		"connection refused; is the service running?",
		"connection refused; start the service first")
}
