// Package strangers holds many connections of hostile clients, for tests of ports.
//
// Non-goals: it judges nothing; the test sends the requests that must be answered nevertheless.
package strangers

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Crowd is a number of connections of hostile clients, of four kinds by turns: silent ones, ones
// that send the beginning of something, ones that send an invalid request, and ones that send one
// byte a second. Each reads what it gets, and holds its connection until the server closes it.
type Crowd struct {
	Address   string
	Beginning string
	Invalid   string
	Again     time.Duration // after which it connects again; 0: not at all

	up     sync.WaitGroup // all have connected once
	done   sync.WaitGroup
	closed atomic.Int64 // by the server
}

// Gather connects them, and disconnects them at the end of the test.
func (c *Crowd) Gather(t testing.TB, n int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); c.done.Wait() })
	c.up.Add(n)
	for i := range n {
		c.done.Go(func() { c.come(ctx, i) })
	}
	c.up.Wait()
}

func (c *Crowd) come(ctx context.Context, i int) {
	for first := true; ctx.Err() == nil; first = false {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", c.Address)
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
		if c.Again == 0 {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(c.Again + time.Duration(i%1000)*c.Again/1000): // not all at once
		}
	}
}

// begin sends what a connection of its kind sends.
func (c *Crowd) begin(ctx context.Context, conn net.Conn, i int) {
	switch i % 4 {
	case 1:
		_, _ = io.WriteString(conn, c.Beginning)
	case 2:
		_, _ = io.WriteString(conn, c.Invalid)
	case 3:
		c.done.Go(func() {
			for k := 0; ctx.Err() == nil; k = (k + 1) % len(c.Invalid) {
				if _, err := io.WriteString(conn, c.Invalid[k:k+1]); err != nil {
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

// Closed returns the number of connections that the server has closed.
func (c *Crowd) Closed() int { return int(c.closed.Load()) }

// NeedFiles skips a test if this process may not open the files for n connections.
func NeedFiles(t testing.TB, n int) {
	t.Helper()
	const spare = 1000
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if limit.Cur < uint64(n+spare) {
		t.Skipf("the limit of open files is %d, and %d clients need %d", limit.Cur, n, n+spare)
	}
}

// PeakMemory returns the largest memory that a process has had, in bytes.
func PeakMemory(t testing.TB, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	peak := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if peak == nil {
		t.Fatalf("process %d has no VmHWM", pid)
	}
	kB, err := strconv.ParseInt(string(peak[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kB << 10
}
