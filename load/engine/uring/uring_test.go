package uring

import (
	"crypto/tls"
	"errors"
	"math"
	"net"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/load/engine"
	"prony.example/load/engine/enginetest"
	"prony.example/load/engine/http2"
	"prony.example/load/engine/socket"
	"prony.example/load/engine/tlsconn"
)

// usable skips the test without io_uring.
func usable(t *testing.T) {
	t.Helper()
	if err := Probe(); err != nil {
		t.Skip(err)
	}
}

// The conformance suite, with the default engine and with the effects of older kernels or small
// queues.
func TestConformance(t *testing.T) {
	usable(t)
	for _, row := range []struct {
		name string
		o    Options
	}{
		{"as it is", Options{}},
		// All queues overflow: requests are submitted at any time, outcomes wait in the kernel, and
		// most receives find no buffer.
		{"tight", Options{
			Whole: true, Buffers: 2, BufferSize: 1 << 10, requests: 4, outcomes: 8, Batch: 3,
		}},
		{"tight, incremental", Options{Buffers: 1, BufferSize: 700, requests: 8, outcomes: 16}},
		{"6.1", Options{Whole: true, Relative: true, rungs: rungs[1:]}},
		{"6.0", Options{
			Whole: true, Buffers: 256, BufferSize: 8 << 10, Relative: true, rungs: rungs[2:],
		}},
		{"direct files, told sends", Options{Direct: true, TellSends: true}},
		{"bundles, gathered, stamped once", Options{
			Whole: true, Bundle: true, Buffers: 64, BufferSize: 1 << 10,
			StampOnce: true, Gather: 4, GatherUs: 100,
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			enginetest.Run(t, func(a netip.AddrPort, n int) (engine.Engine, error) {
				return NewWith(a, n, row.o)
			})
		})
	}
}

// The same over TLS.
func TestSecure(t *testing.T) {
	usable(t)
	for _, row := range []struct {
		name    string
		version uint16
		o       Options
	}{
		{"as it is", tls.VersionTLS13, Options{}},
		{"tight", tls.VersionTLS13, Options{
			Whole: true, Buffers: 2, BufferSize: 1 << 10, requests: 4, outcomes: 8, Batch: 3,
		}},
		{"TLS 1.2", tls.VersionTLS12, Options{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.name != "as it is" {
				testsets.Whole(t, "the ring in narrow places, over TLS")
			}
			enginetest.RunSecure(t, row.version, func(a netip.AddrPort, n int, c *tls.Config) (
				engine.Engine, error) {
				e, err := NewWith(a, n, row.o)
				if err != nil {
					return nil, err
				}
				return tlsconn.New(e, c, n), nil
			})
		})
	}
}

// The same with HTTP/2 streams, with and without TLS, and with gRPC calls.
func TestStreams(t *testing.T) {
	usable(t)
	const streams = 5
	tight := Options{
		Whole: true, Buffers: 2, BufferSize: 1 << 10, requests: 4, outcomes: 8, Batch: 3,
	}
	for _, row := range []struct {
		name          string
		secure, calls bool
		o             Options
	}{{"h2c", false, false, Options{}}, {"h2", true, false, Options{}},
		{"tight", false, false, tight}, {"grpc", false, true, Options{}},
		{"grpcs", true, true, Options{}}} {
		t.Run(row.name, func(t *testing.T) {
			if row.secure == row.calls {
				testsets.Whole(t, "the ring in narrow places, with streams")
			}
			run, over := enginetest.RunStreams, http2.New
			if row.calls {
				run, over = enginetest.RunCalls, calls
			}
			run(t, row.secure, func(a netip.AddrPort, n int, c *tls.Config) (engine.Engine, error) {
				e, err := NewWith(a, http2.Below(n, streams), row.o)
				if err != nil || !row.secure {
					return over(e, n, streams, false), err
				}
				return over(
					tlsconn.NewStreamer(e, c, http2.Below(n, streams)),
					n,
					streams,
					true,
				), nil
			})
		})
	}
}

func calls(below engine.Streamer, slots, streams int, secure bool) *http2.Engine {
	return http2.NewCalls(below, slots, streams, secure, time.Minute)
}

// locked runs the test on a thread that ends with it.
func locked(t *testing.T) {
	t.Helper()
	usable(t)
	runtime.LockOSThread()
}

func ringFor(t *testing.T, addr netip.AddrPort, slots int, o Options) *Engine {
	t.Helper()
	e, err := NewWith(addr, slots, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Release)
	return e
}

var nowhere = netip.MustParseAddrPort("127.0.0.1:1")

// notes is a Handler that counts.
type notes struct {
	opened, closed, bytes          int
	op                             engine.Op
	err                            error
	onOpened, onReceived, onClosed func(i int)
}

func (n *notes) Opened(i int, _ int64) {
	n.opened++
	if n.onOpened != nil {
		n.onOpened(i)
	}
}

func (n *notes) Received(i int, _ int64, b []byte) {
	n.bytes += len(b)
	if n.onReceived != nil {
		n.onReceived(i)
	}
}

func (n *notes) Closed(i int, _ int64, op engine.Op, err error) {
	n.closed++
	n.op, n.err = op, err
	if n.onClosed != nil {
		n.onClosed(i)
	}
}

// pump waits until the condition holds.
func pump(t *testing.T, e *Engine, n *notes, until func() bool) {
	t.Helper()
	for end := clock.Mono() + int64(20*time.Second); !until(); {
		if clock.Mono() > end {
			t.Fatalf("still not so; heard %+v", *n)
		}
		if err := e.Wait(clock.Mono()+int64(10*time.Millisecond), n); err != nil {
			t.Fatal(err)
		}
	}
}

// listen serves each connection with f.
func listen(t *testing.T, f func(net.Conn)) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go enginetest.Serve(l, f)
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// If a kernel refuses a flag, the next setup is tried, and only for that reason.
func TestSetupFallsBack(t *testing.T) {
	locked(t)
	const unknown = 1 << 30
	check := func(rungs []uint32, want uint32) {
		t.Helper()
		e := ringFor(t, nowhere, 1, Options{rungs: rungs})
		if e.ring.flags&^setupCQSize != want {
			t.Errorf("set up with %#x, want %#x", e.ring.flags, want)
		}
	}
	check([]uint32{setupSingleIssuer | unknown, setupSingleIssuer, 0}, setupSingleIssuer)
	check([]uint32{unknown, unknown, setupSubmitAll}, setupSubmitAll)
	for i, r := range rungs { // each works by itself
		check(rungs[i:], r)
	}
	_, err := NewWith(nowhere, 1, Options{rungs: []uint32{unknown}})
	if !errors.Is(err, unix.EINVAL) || !strings.Contains(err.Error(), "Linux 6.0") {
		t.Errorf("all refused: %v", err)
	}
}

// Errors explain what prevents a ring.
func TestRefusals(t *testing.T) {
	for _, row := range []struct {
		errno syscall.Errno
		want  string
	}{
		{unix.ENOSYS, "the kernel has none"},
		{unix.EPERM, "seccomp"},
		{unix.EINVAL, "Linux 6.0 or later, this is "},
		{unix.ENOMEM, "ulimit -l"},
		{unix.EMFILE, "too many open files"},
	} {
		b, err := os.ReadFile(sysctl)
		if row.errno == unix.EPERM && err == nil && strings.TrimSpace(string(b)) != "0" {
			row.want = "kernel.io_uring_disabled"
		}
		if err := refusal(row.errno); !errors.Is(err, row.errno) ||
			!strings.Contains(err.Error(), row.want) {
			t.Errorf("%d: %v, want %q", row.errno, err, row.want)
		}
	}
}

// A container's filter, simulated for this thread only, makes the probe fail with an explanation.
func TestProbeUnderAFilter(t *testing.T) {
	locked(t)
	// Load the number of the call; if it is io_uring_setup, fail with EPERM; allow all others.
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_IO_URING_SETUP},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0x00050000 | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0x7fff0000},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Skip(err)
	}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER,
		uintptr(unsafe.Pointer(&prog)), 0, 0)
	if err != nil {
		t.Skipf("cannot set a filter: %v", err)
	}
	err = try()
	if !errors.Is(err, unix.EPERM) || !strings.Contains(err.Error(), "container") {
		t.Errorf("probe: %v", err)
	}
	if err := Probe(); err != nil { // elsewhere nothing has changed
		t.Errorf("probe on another thread: %v", err)
	}
}

// The ring belongs to a thread; use by another is an error.
func TestWrongThread(t *testing.T) {
	locked(t)
	e := ringFor(t, nowhere, 1, Options{})
	got := make(chan error)
	go func() {
		runtime.LockOSThread()
		got <- e.Wait(clock.Mono()+1e6, &notes{})
	}()
	if err := <-got; err == nil || !strings.Contains(err.Error(), "another thread") {
		t.Errorf("told %v", err)
	}
}

// Polling without events does not enter the kernel; with the ring's descriptor closed, an enter
// would be an error.
func TestIdlePollsStayOut(t *testing.T) {
	locked(t)
	e := ringFor(t, listen(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) }), 1, Options{})
	var n notes
	e.Open(0)
	pump(t, e, &n, func() bool { return n.opened == 1 })
	pump(t, e, &n, func() bool { return e.ring.pending() == 0 && !e.ring.due() })
	fd, by := e.ring.enterFD, e.ring.enterBy
	e.ring.enterFD, e.ring.enterBy = -1, 0
	for _, d := range []int64{0, clock.Mono(), math.MinInt64} {
		if err := e.Wait(d, &n); err != nil {
			t.Errorf("deadline %d: %v", d, err)
		}
	}
	if err := e.Wait(clock.Mono()+1e9, &n); !errors.Is(err, unix.EBADF) {
		t.Errorf("a wait: %v, want the error of an enter", err)
	}
	e.Send(0, []byte("x"))
	if err := e.Wait(0, &n); !errors.Is(err, unix.EBADF) {
		t.Errorf("a poll with a request: %v, want the error of an enter", err)
	}
	e.ring.enterFD, e.ring.enterBy = fd, by
}

// One buffer for many connections with data: most receives end for lack of a buffer, and all bytes
// arrive.
func TestBuffersRunOut(t *testing.T) {
	locked(t)
	const slots, size = 20, 5000
	for _, whole := range []bool{true, false} {
		said := make(chan bool, slots)
		e := ringFor(t, listen(t, func(c net.Conn) {
			_, _ = c.Write(make([]byte, size)) // lost bytes fail the test anyway
			said <- true
			_, _ = c.Read(make([]byte, 1))
		}), slots, Options{Whole: whole, Buffers: 1, BufferSize: 1000})
		var n notes
		for i := range slots {
			e.Open(i)
		}
		pump(t, e, &n, func() bool { return n.opened == slots })
		for range slots {
			<-said
		}
		starved := func() bool {
			r := &e.ring
			for k := r.head; k != r.head+r.ready(); k++ {
				if c := r.cqes[k&r.cqMask]; c.res == -int32(unix.ENOBUFS) && c.flags&cqeMore == 0 {
					return true
				}
			}
			return false
		}
		for k := 0; k < 1000 && !starved(); k++ { // directly, because Wait would return them
			if err := e.ring.enter(0, enterGetEvents, nil, 0); err != nil {
				t.Fatal(err)
			}
		}
		if !starved() {
			t.Error("the buffer did not run out: nothing to see")
		}
		pump(t, e, &n, func() bool { return n.bytes == slots*size })
		if n.closed != 0 || n.opened != slots {
			t.Errorf("whole %v: heard %+v", whole, n)
		}
	}
}

// Generations in userData wrap around, and the slot continues to work.
func TestGenerationsWrap(t *testing.T) {
	locked(t)
	e := ringFor(t, listen(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) }), 2, Options{})
	e.slots[0].gen = generations - 3
	e.slots[1].gen = math.MaxUint32 - 2
	var n notes
	n.onOpened = func(i int) {
		if e.Close(i); n.opened < 20 {
			e.Open(i)
		}
	}
	e.Open(0)
	e.Open(1)
	pump(t, e, &n, func() bool { return n.opened >= 20 })
	if n.closed != 0 {
		t.Errorf("heard %+v", n)
	}
}

// A late outcome for a predecessor does not count for its successor: same slot, next generation,
// any kind.
func TestLateOutcomesAreIgnored(t *testing.T) {
	locked(t)
	addr := listen(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) })
	e := ringFor(t, addr, 1, Options{})
	var n notes
	e.Open(0)
	pump(t, e, &n, func() bool { return n.opened == 1 && e.ring.pending() == 0 })
	before := e.slots[0]
	for kind := connecting; kind <= cancelling; kind++ {
		for _, res := range []int32{0, 5, -int32(unix.ECONNRESET), -int32(unix.ENOBUFS)} {
			e.outcome(cqe{userData: name(kind, 0, before.gen-1), res: min(res, 0)}, 0, &n)
		}
	}
	if after := e.slots[0]; after.gen != before.gen || after.armed != before.armed ||
		after.err != nil || n.opened+n.closed+n.bytes != 1 || e.ring.pending() != 0 {
		t.Errorf("before %+v, after %+v, heard %+v", before, after, n)
	}
	// The same for the current one is not ignored.
	e.outcome(cqe{userData: name(receiving, 0, before.gen), res: -int32(unix.ECONNRESET)}, 0, &n)
	if n.closed != 1 {
		t.Errorf("heard %+v", n)
	}
}

// A failed send ends the connection after delivery of what the peer has sent, even if only the
// local kernel failed.
func TestFailedSendsAreTold(t *testing.T) {
	locked(t)
	addr := listen(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) })
	check := func(kind uint64, res int32, want error) {
		t.Helper()
		e := ringFor(t, addr, 1, Options{})
		var n notes
		e.Open(0)
		pump(t, e, &n, func() bool { return n.opened == 1 })
		e.outcome(cqe{userData: name(kind, 0, e.slots[0].gen), res: res}, 0, &n)
		pump(t, e, &n, func() bool { return n.closed == 1 })
		if n.op != engine.Writing || n.err != want {
			t.Errorf("told %v, %v, want a failed write, %v", n.op, n.err, want)
		}
	}
	check(sending, -int32(unix.ENOMEM), unix.ENOMEM)
	check(sending, 3, unix.EPIPE) // incomplete, which means that the kernel could not send the rest
	check(sendingParts, -int32(unix.ENOMEM), unix.ENOMEM)
}

// The rest of a response to a request that was not sent completely does not count for the next one,
// even if the kernel has delivered all of it already.
func TestRestOfAnEarlyAnswer(t *testing.T) {
	locked(t)
	const size = 16
	spoken := make(chan bool)
	e := ringFor(t, listen(t, func(c net.Conn) {
		_, _ = c.Write(make([]byte, 4*size)) // lost bytes fail the test anyway
		close(spoken)
		_, _ = c.Read(make([]byte, 1))
	}), 1, Options{Whole: true, Buffers: 8, BufferSize: size})
	var n notes
	e.Open(0)
	pump(t, e, &n, func() bool { return n.opened == 1 })
	<-spoken
	e.slots[0].parts = true
	n.onReceived = func(i int) { e.Send(i, []byte("second")) }
	pump(t, e, &n, func() bool { return n.closed == 1 })
	if n.bytes != size || n.err != socket.ErrEarly || n.op != engine.Writing {
		t.Errorf("heard %d bytes, and %v, %v", n.bytes, n.op, n.err)
	}
}

// Receives that found no buffer are restarted without other events, for any number of them: the
// wait does not sleep meanwhile.
func TestHungryDoNotSleep(t *testing.T) {
	locked(t)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it cannot stop this thread
	var set unix.Sigset_t
	set.Val[0] = 1 << (unix.SIGURG - 1) // with which the runtime would end the wait
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil); err != nil {
		t.Fatal(err)
	}
	const slots = 5
	e := ringFor(t, listen(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) }), slots,
		Options{Buffers: 1, BufferSize: 1 << 10})
	var n notes
	for i := range slots {
		e.Open(i)
	}
	pump(t, e, &n, func() bool { return n.opened == slots && e.ring.pending() == 0 })
	for i := range slots {
		starved := cqe{userData: name(receiving, i, e.slots[i].gen), res: -int32(unix.ENOBUFS)}
		e.outcome(starved, 0, &n)
	}
	for deadline := clock.Mono() + int64(10*time.Second); len(e.hungry) > 1; {
		if err := e.Wait(deadline, &n); err != nil || clock.Mono() > deadline {
			t.Fatalf("%d wait in vain: %v", len(e.hungry), err)
		}
	}
}

// A descriptor keeps its number until the requests that name it were submitted; otherwise another
// part of the process could get the number, and their bytes.
func TestDescriptorsOutliveRequests(t *testing.T) {
	locked(t)
	e := ringFor(t, listen(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) }), 1, Options{})
	var n notes
	e.Open(0)
	pump(t, e, &n, func() bool { return n.opened == 1 })
	fd := e.slots[0].fd
	at := func() (ino uint64, err error) { // the number can be reused as soon as it is free
		var st unix.Stat_t
		err = unix.Fstat(int(fd), &st)
		return st.Ino, err
	}
	own, err := at()
	if err != nil {
		t.Fatal(err)
	}
	e.Send(0, []byte("x"))
	e.Close(0)
	if ino, err := at(); err != nil || ino != own {
		t.Errorf("after Close: %d, %v, want %d", ino, err, own)
	}
	if err := e.Wait(0, &n); err != nil {
		t.Fatal(err)
	}
	if ino, err := at(); err != unix.EBADF && ino == own {
		t.Errorf("after the next turn: %d, %v", ino, err)
	}
}

// A handler that reopens a slot each time it fails does not keep Wait from returning.
func TestFailingOpensAreToldOnceATurn(t *testing.T) {
	locked(t)
	e := ringFor(t, nowhere, 2, Options{})
	e.addr.Family = -1 // no socket of this kind can be created
	var n notes
	n.onClosed = func(i int) { e.Open(i) }
	e.Open(0)
	e.Open(1)
	for k := range 3 {
		if err := e.Wait(clock.Mono()+1e9, &n); err != nil {
			t.Fatal(err)
		}
		if n.closed != 2*(k+1) || n.op != engine.Connecting || n.err == nil {
			t.Errorf("turn %d: heard of %d failures, %v, %v", k, n.closed, n.op, n.err)
		}
	}
}

// Nothing stays mapped.
func TestReleaseUnmaps(t *testing.T) {
	locked(t)
	rings := func() int {
		b, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Skip(err)
		}
		return strings.Count(string(b), "[io_uring]")
	}
	before := rings()
	e, err := New(nowhere, 1)
	if err != nil {
		t.Fatal(err)
	}
	if rings() == before {
		t.Error("no ring is mapped: nothing to see")
	}
	at := uintptr(unsafe.Pointer(&e.bufs.mem[0])) &^ uintptr(os.Getpagesize()-1)
	resident := func() syscall.Errno {
		var vec [1]byte
		_, _, errno := syscall.Syscall(unix.SYS_MINCORE, at, 1, uintptr(unsafe.Pointer(&vec[0])))
		return errno
	}
	if errno := resident(); errno != 0 {
		t.Errorf("mincore: %v", errno)
	}
	e.Release()
	if n := rings(); n != before {
		t.Errorf("%d mappings of rings, before %d", n, before)
	}
	if errno := resident(); errno != unix.ENOMEM {
		t.Errorf("the buffers are still there: mincore says %v", errno)
	}
}
