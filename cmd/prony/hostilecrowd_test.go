package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
)

// mob is a number of connections of hostile clients, of four kinds by turns: silent ones, ones
// that send the beginning of something, ones that send an invalid request, and ones that send one
// byte a second. Each reads what it gets, and holds its connection until the server closes it.
type mob struct {
	address   string
	beginning string
	invalid   string
	again     time.Duration // after which it connects again; 0: not at all

	up     sync.WaitGroup // all have connected once
	done   sync.WaitGroup
	closed atomic.Int64 // by the server
}

// gather connects them, and disconnects them at the end of the test.
func (c *mob) gather(t *testing.T, n int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); c.done.Wait() })
	c.up.Add(n)
	for i := range n {
		c.done.Go(func() { c.come(ctx, i) })
	}
	c.up.Wait()
}

func (c *mob) come(ctx context.Context, i int) {
	for first := true; ctx.Err() == nil; first = false {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", c.address)
		if err == nil {
			leave := context.AfterFunc(ctx, func() { conn.Close() })
			c.begin(ctx, conn, i)
			if first {
				c.up.Done()
			}
			_, _ = io.Copy(io.Discard, conn)
			if leave() {
				c.closed.Add(1)
				conn.Close()
			}
		} else if first {
			c.up.Done()
		}
		if c.again == 0 {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(c.again + time.Duration(i%1000)*c.again/1000): // not all at once
		}
	}
}

// begin sends what a connection of its kind sends.
func (c *mob) begin(ctx context.Context, conn net.Conn, i int) {
	switch i % 4 {
	case 1:
		_, _ = io.WriteString(conn, c.beginning)
	case 2:
		_, _ = io.WriteString(conn, c.invalid)
	case 3:
		c.done.Go(func() {
			for k := 0; ctx.Err() == nil; k = (k + 1) % len(c.invalid) {
				if _, err := io.WriteString(conn, c.invalid[k:k+1]); err != nil {
					return
				}
				select {
				case <-ctx.Done():
				case <-time.After(time.Second):
				}
			}
		})
	}
}

const crowdToken = "abcdefghijklmnopqrstuvwxyz0123456789"

// crowded starts a server with a token, which hostile clients hold connections of. ask sends a
// request with the token on a new connection; end ends the server and returns its messages.
func crowded(t *testing.T, n int, again time.Duration) (c *mob, server *exec.Cmd, ask func() error,
	end func() string) {
	t.Helper()
	var messages bytes.Buffer
	d := &desk{t: t, dir: t.TempDir()}
	t.Setenv("PRONY_TOKEN", crowdToken)
	d.stderr = &messages
	d.begin("", "serve", d.dir, "--listen", "127.0.0.1:0")
	address := strings.TrimPrefix(d.base, "http://")
	head := "GET /api/v1/runs HTTP/1.1\r\nHost: " + address + "\r\n"
	c = &mob{address: address, beginning: head, invalid: head + "\r\n", again: again}
	c.gather(t, n)
	client := &http.Client{Timeout: 30 * time.Second,
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
	testsets.Live(t)
	const hostile, most = 2300, 2048
	c, _, ask, end := crowded(t, hostile, 0)
	for range 5 {
		if err := ask(); err != nil {
			t.Error(err)
		}
	}
	if n := c.closed.Load(); n < hostile-most {
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
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if limit.Cur < hostile+1000 {
		t.Skipf("the limit of open files is %d, and %d clients need %d", limit.Cur, hostile,
			hostile+1000)
	}
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
	status, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(server.Process.Pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	peak := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	kB, err := strconv.Atoi(string(peak[1]))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("median %v, at most %v, %d MB, %d connections closed", median, last, kB/1000,
		c.closed.Load())
	if median > 200*time.Millisecond || last > time.Second || kB > 300_000 {
		t.Errorf("median %v, at most %v, %d kB", median, last, kB)
	}
}
