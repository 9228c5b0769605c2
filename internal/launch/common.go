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

// drainBound is how long the last words of a target that has ended are waited for.
const drainBound = 5 * time.Second

// Common is what launchers keep of a process in one way: their processes embed it.
type Common struct {
	Spec             Spec
	BeganNs          int64          // see Process.Began
	InForce, Missing []record.Limit // see Process.Limits
	Stops            sync.Mutex     // one Process.Stop at a time
	Stopping         atomic.Bool    // one has begun

	retained *Log
	copied   chan struct{} // closed when nothing more comes into the log; nil: nobody copies
	cut      func()

	end    sync.Once
	exited chan struct{}
	exit   atomic.Pointer[string]
}

// NewCommon is that of a process which is to be started.
func NewCommon(s Spec) *Common { return &Common{Spec: s, exited: make(chan struct{})} }

// Addr implements Process: on the loopback interface, where plain processes are told to listen.
func (c *Common) Addr() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(c.Spec.Port))
}

// Began implements Process.
func (c *Common) Began() int64 { return c.BeganNs }

// Limits implements Process.
func (c *Common) Limits() (inForce, missing []record.Limit) { return c.InForce, c.Missing }

// Exited implements Process.
func (c *Common) Exited() <-chan struct{} { return c.exited }

// Exit implements Process; nothing before the end.
func (c *Common) Exit() string {
	if how := c.exit.Load(); how != nil {
		return *how
	}
	return ""
}

// End says that the process has ended, and how; of several ends the first counts.
func (c *Common) End(how string) {
	c.end.Do(func() {
		c.exit.Store(&how)
		close(c.exited)
	})
}

// Ended says whether it has.
func (c *Common) Ended() bool {
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

// Wait waits for the end, so long at the most.
func (c *Common) Wait(bound time.Duration) {
	select {
	case <-c.exited:
	case <-time.After(bound):
	}
}

// OpenLog begins to keep the log within its bounds, and gives the file for whoever writes it.
// CloseLog ends it.
func (c *Common) OpenLog() (to *os.File, err error) {
	if c.retained, err = KeepLog(c.Spec.LogFile); err != nil {
		return nil, err
	}
	return c.retained.Writer()
}

// CopyLog has the lab itself write what the target says, until that is all or it is cut off.
func (c *Common) CopyLog(to *os.File, cut, write func()) {
	c.copied, c.cut = make(chan struct{}), cut
	go func() {
		defer close(c.copied)
		write()
		_ = to.Close()
		_ = c.retained.Close() // what is there is all that there will be
	}()
}

// DrainLog waits for the last words of a target that has ended. Somebody else may hold open what
// they come by.
func (c *Common) DrainLog() {
	select {
	case <-c.copied:
	case <-time.After(drainBound):
		c.cut()
		<-c.copied
	}
}

// CloseLog ends what writes the log and what keeps it. It may be called again, and of no log.
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
