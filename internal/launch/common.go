package launch

import (
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"prony.example/internal/base/files"
	"prony.example/record"
)

// drainBound limits the time for which a log is read after its target has ended.
const drainBound = 5 * time.Second

// Common implements the part of Process that all launchers share. Their process types embed it.
type Common struct {
	Spec             Spec
	BeganNs          int64          // see Process.Began
	InForce, Missing []record.Limit // see Process.Limits
	Stops            sync.Mutex     // held by Process.Stop: one stop at a time
	Stopping         atomic.Bool    // true as soon as Process.Stop has begun

	retained *Log
	copied   chan struct{} // closed when the log is complete; nil: nothing copies
	cut      func()

	end    sync.Once
	exited chan struct{}
	exit   atomic.Pointer[string]
}

// NewCommon returns the Common of a process that has yet to be started.
func NewCommon(s Spec) *Common { return &Common{Spec: s, exited: make(chan struct{})} }

// Addr implements Process: plain processes listen on the loopback interface.
func (c *Common) Addr() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(c.Spec.Port))
}

// Began implements Process.
func (c *Common) Began() int64 { return c.BeganNs }

// Limits implements Process.
func (c *Common) Limits() (inForce, missing []record.Limit) { return c.InForce, c.Missing }

// Exited implements Process.
func (c *Common) Exited() <-chan struct{} { return c.exited }

// Exit implements Process. It returns "" before the end.
func (c *Common) Exit() string {
	if how := c.exit.Load(); how != nil {
		return *how
	}
	return ""
}

// End records that the process has ended, and how. Only the first call counts.
func (c *Common) End(how string) {
	c.end.Do(func() {
		c.exit.Store(&how)
		close(c.exited)
	})
}

// Ended reports whether the process has ended.
func (c *Common) Ended() bool {
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

// Wait waits until the process ends or the bound has passed.
func (c *Common) Wait(bound time.Duration) {
	select {
	case <-c.exited:
	case <-time.After(bound):
	}
}

// OpenLog begins to keep the log within its bounds and returns the file for its writer. CloseLog
// ends it.
func (c *Common) OpenLog() (to *os.File, err error) {
	if c.retained, err = KeepLog(c.Spec.LogFile); err != nil {
		return nil, err
	}
	return c.retained.Writer()
}

// CopyLog runs write, which copies the target's output into the log, in the background. CloseLog
// and DrainLog call cut to make write return.
func (c *Common) CopyLog(to *os.File, cut, write func()) {
	c.copied, c.cut = make(chan struct{}), cut
	go func() {
		defer close(c.copied)
		write()
		_ = to.Close()
		_ = c.retained.Close() // the log is complete
	}()
}

// DrainLog waits until the log of a target that has ended is complete, for 5 s at most: another
// process may keep the stream open.
func (c *Common) DrainLog() {
	select {
	case <-c.copied:
	case <-time.After(drainBound):
		c.cut()
		<-c.copied
	}
}

// CloseLog ends the copying and bounding of the log. It may be called again, and without a log.
func (c *Common) CloseLog() error {
	if c.copied != nil {
		c.cut()
		<-c.copied
	}
	return c.retained.Close()
}

// Log implements Process.
func (c *Common) Log(n int) []string { return files.Tail(c.Spec.LogFile, n) }

// LogDropped implements Process.
func (c *Common) LogDropped() int64 { return c.retained.Dropped() }
