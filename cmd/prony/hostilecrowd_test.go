package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"prony.example/internal/dev/strangers"
	"prony.example/internal/dev/testsets"
)

const crowdToken = "abcdefghijklmnopqrstuvwxyz0123456789"

// crowded starts a server with a token, which hostile clients hold connections of. ask sends a
// request with the token on a new connection; end ends the server and returns its messages.
func crowded(t *testing.T, n int, again time.Duration) (c *strangers.Crowd, server *exec.Cmd,
	ask func() error, end func() string) {
	t.Helper()
	var messages bytes.Buffer
	d := &desk{t: t, dir: t.TempDir()}
	t.Setenv("PRONY_TOKEN", crowdToken)
	d.stderr = &messages
	d.begin("", "serve", d.dir, "--listen", "127.0.0.1:0")
	address := strings.TrimPrefix(d.base, "http://")
	head := "GET /api/v1/runs HTTP/1.1\r\nHost: " + address + "\r\n"
	c = &strangers.Crowd{Address: address, Beginning: head, Invalid: head + "\r\n", Again: again}
	c.Gather(t, n)
	client := &http.Client{Timeout: testsets.Patience,
		Transport: &http.Transport{DisableKeepAlives: true}}
	ask = func() error {
		r, err := http.NewRequestWithContext(t.Context(), "GET", d.base+"/api/v1/runs", nil)
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+crowdToken)
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return errors.New(answer.Status)
		}
		_, err = io.ReadAll(answer.Body)
		return err
	}
	return c, d.cmd, ask, func() string { d.stop(); return messages.String() }
}

// Clients without the token that hold connections do not shut out one that has it, and are reported
// in one line.
func TestServeCrowd(t *testing.T) {
	testsets.Whole(t, "a crowd of viewers")
	testsets.Live(t)
	const hostile, most = 2300, 2048
	c, _, ask, end := crowded(t, hostile, 0)
	for range 5 {
		if err := ask(); err != nil {
			t.Error(err)
		}
	}
	if n := c.Closed(); n < hostile-most {
		t.Errorf("%d hostile connections were closed, want at least %d", n, hostile-most)
	}
	said := end()
	lines := regexp.MustCompile(`(?m)^prony: refused (\d+) connections without the token$`).
		FindAllStringSubmatch(said, -1)
	if len(lines) < 1 || len(lines) > 2 || strings.Count(said, "refused") != len(lines) {
		t.Fatalf("it said %q", said) // two if the first ones were reported while it ran
	}
	sum := 0
	for _, line := range lines {
		n, _ := strconv.Atoi(line[1])
		sum += n
	}
	if sum < hostile/4 || sum > hostile {
		t.Errorf("it refused %d of %d", sum, hostile)
	}
}

// With 10,000 hostile clients, each of which comes again, requests with the token are answered
// within 200 ms at the median and 1 s at most, with less than 300 MB of memory.
func TestServeLargeCrowd(t *testing.T) {
	testsets.Long(t, "prony serve with 10,000 hostile clients", testsets.Needs{})
	testsets.Measured(t)
	const hostile = 10_000
	strangers.NeedFiles(t, hostile)
	c, server, ask, _ := crowded(t, hostile, 5*time.Second)
	var took []time.Duration
	for range 200 {
		began := time.Now()
		err := ask()
		for try := 1; err != nil && try < 3; try++ { // as a client does at a busy moment
			err = ask()
		}
		if err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
		time.Sleep(50 * time.Millisecond)
	}
	slices.Sort(took)
	median, last := took[len(took)/2], took[len(took)-1]
	peak := strangers.PeakMemory(t, server.Process.Pid)
	t.Logf("median %v, at most %v, %d MB, %d connections closed", median, last, peak/1e6,
		c.Closed())
	if median > 200*time.Millisecond || last > time.Second || peak > 300e6 {
		t.Errorf("median %v, at most %v, %d MB", median, last, peak/1e6)
	}
}
