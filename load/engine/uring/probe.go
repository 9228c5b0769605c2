package uring

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/load/engine"
)

// Probe reports whether the engine works here; the error explains why not. It does once what the
// engine needs, because a kernel, a container's filter or a sandbox can lack any part of it.
func Probe() error {
	done := make(chan error)
	go func() { // its own thread, because a ring is bound to one
		runtime.LockOSThread()
		done <- try()
	}()
	return <-done
}

// try opens a connection to an echo server in this process and waits for the echo.
func try() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("probe io_uring: %w", err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = io.Copy(c, c) // until the engine closes
			c.Close()
		}
	}()
	e, err := New(l.Addr().(*net.TCPAddr).AddrPort(), 1)
	if err != nil {
		return err
	}
	defer e.Release()
	p := &prober{engine: e}
	e.Open(0)
	return p.serve(clock.Mono() + int64(2*time.Second))
}

var probeText = []byte("probe")

type prober struct {
	engine engine.Engine
	got    string
	err    error
}

func (p *prober) Opened(i int, _ int64)             { p.engine.Send(i, probeText) }
func (p *prober) Received(_ int, _ int64, b []byte) { p.got += string(b) }

func (p *prober) Closed(_ int, _ int64, _ engine.Op, err error) {
	if p.err = err; err == nil {
		p.err = errors.New("the connection was closed")
	}
}

// serve waits for the echo until a deadline.
func (p *prober) serve(end int64) error {
	for p.got != string(probeText) {
		if p.err == nil && clock.Mono() > end {
			p.err = errors.New("nothing comes back")
		}
		if p.err != nil {
			return fmt.Errorf("probe io_uring: %w", p.err)
		}
		if err := p.engine.Wait(end, p); err != nil {
			return err
		}
	}
	return nil
}

const sysctl = "/proc/sys/kernel/io_uring_disabled"

// refusal explains why the kernel creates no ring.
func refusal(errno syscall.Errno) error {
	why := ""
	switch errno {
	case unix.ENOSYS:
		why = "; the kernel has none, or the container's filter hides it"
	case unix.EPERM:
		b, err := os.ReadFile(sysctl)
		if v := strings.TrimSpace(string(b)); err == nil && v != "0" {
			why = "; kernel.io_uring_disabled is " + v
		} else {
			why = "; a filter of the container forbids it (docker run --security-opt seccomp=…)"
		}
	case unix.EINVAL:
		why = "; it needs Linux 6.0 or later" + running()
	case unix.ENOMEM:
		why = "; too little memory, or too low a limit on locked memory (ulimit -l)"
	}
	return fmt.Errorf("set up io_uring: %w%s", errno, why)
}

// running returns the kernel's release.
func running() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return ", this is " + unix.ByteSliceToString(u.Release[:])
}
