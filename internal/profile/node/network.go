package node

import (
	"context"
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
		// Never unlocked: the thread, which has another network than the rest, ends with this.
		runtime.LockOSThread()
		var namespace *os.File
		if namespace, err = os.Open(there); err != nil {
			return
		}
		err = unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET)
		if closed := namespace.Close(); err == nil {
			err = closed
		}
		if err != nil {
			err = fmt.Errorf("enter the network of process %d: %w", pid, err)
			return
		}
		conn, err = connect()
	}()
	<-done
	return conn, err
}
