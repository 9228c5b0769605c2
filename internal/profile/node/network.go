package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// client speaks HTTP at the addresses that a process has: in a container, 127.0.0.1 is another one.
func client(pid int) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return inNetworkOf(pid, func() (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, address)
			})
		}}}
}

// inNetworkOf connects from within the network namespace of a process (setns(2)). A socket stays in
// the namespace that it was made in.
func inNetworkOf(pid int, connect func() (net.Conn, error)) (conn net.Conn, err error) {
	there := fmt.Sprintf("/proc/%d/ns/net", pid)
	ours, err1 := os.Stat("/proc/self/ns/net")
	its, err2 := os.Stat(there)
	if err1 != nil || err2 != nil || os.SameFile(ours, its) {
		return connect()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// Its network is what /proc/self shows of the program: as long as the main thread is
			// held here, the next goroutine has another one.
			defer runtime.UnlockOSThread()
			conn, err = inNetworkOf(pid, connect)
			return
		}
		conn, err = visit(there, connect)
	}()
	<-done
	return conn, err
}

// visit connects from within a namespace and comes back. The thread must not end, as long as it can
// come back: processes that it has started would end with it (PR_SET_PDEATHSIG, prctl(2)).
func visit(there string, connect func() (net.Conn, error)) (net.Conn, error) {
	home, err1 := os.Open("/proc/thread-self/ns/net")
	away, err2 := os.Open(there)
	defer func() { _, _ = home.Close(), away.Close() }() // nil ones say so, and nobody asks
	if err := errors.Join(err1, err2); err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	if err := unix.Setns(int(away.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("enter %s: %w", there, err)
	}
	conn, err := connect()
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		return conn, errors.Join(err, fmt.Errorf("leave %s: %w", there, back))
	}
	runtime.UnlockOSThread()
	return conn, err
}
