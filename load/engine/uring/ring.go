package uring

import (
	"errors"
	"fmt"
	"math/bits"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ring is the two queues that are shared with the kernel. Of each this side writes one end only:
// requests are published by storing the submission queue's tail, outcomes given back by storing the
// completion queue's head, both after what they stand for was written or read.
type ring struct {
	fd       int
	enterFD  int    // fd, or its number in the table of registered rings
	flags    uint32 // of the setup
	features uint32
	enterBy  uintptr // flags of every enter

	mem, sqeMem []byte
	sqes        []sqe
	sqHead      *uint32
	sqTail      *uint32
	sqFlags     *uint32
	sqMask      uint32
	tail        uint32 // requests written
	submitted   uint32 // requests that the kernel has taken

	cqes   []cqe
	cqHead *uint32
	cqTail *uint32
	cqMask uint32
	head   uint32 // outcomes taken

	arg waitArg
	ts  unix.Timespec
}

// rungs are the set-ups that are tried, best first. What each drops: the queue without an index of
// its own (before 6.6), completions that are worked off only when asked for (before 6.1).
var rungs = []uint32{
	setupSingleIssuer | setupDeferTaskrun | setupTaskrunFlag | setupSubmitAll | setupNoSQArray,
	setupSingleIssuer | setupDeferTaskrun | setupTaskrunFlag | setupSubmitAll,
	setupSingleIssuer | setupCoopTaskrun | setupTaskrunFlag | setupSubmitAll,
}

// flushes bounds how often the kernel is asked to take what it has no memory for.
const flushes = 100

const required = featSingleMmap | featNoDrop | featFastPoll | featExtArg | featCQESkip

// open makes a ring. It belongs to the calling thread, which alone may use it from then on.
func (r *ring) open(sqEntries, cqEntries uint32, rungs []uint32) error {
	var p params
	var errno syscall.Errno
	for _, flags := range rungs {
		p = params{flags: flags | setupCQSize, cqEntries: cqEntries}
		if r.fd, errno = setup(sqEntries, &p); errno != unix.EINVAL {
			break
		}
	}
	if errno != 0 {
		return refusal(errno)
	}
	r.flags, r.features = p.flags, p.features
	if missing := required &^ p.features; missing != 0 {
		unix.Close(r.fd)
		return fmt.Errorf("set up io_uring: the kernel lacks features %#x; it is too old", missing)
	}
	if err := r.mmap(&p); err != nil {
		unix.Close(r.fd)
		return fmt.Errorf("map io_uring's queues: %w", err)
	}
	r.register()
	return nil
}

func (r *ring) mmap(p *params) error {
	size := max(p.cq.cqes+p.cqEntries*uint32(unsafe.Sizeof(cqe{})), p.sq.array+p.sqEntries*4)
	const access, how = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED | unix.MAP_POPULATE
	var err error
	if r.mem, err = unix.Mmap(r.fd, offSQRing, int(size), access, how); err != nil {
		return err
	}
	size = p.sqEntries * uint32(unsafe.Sizeof(sqe{}))
	if r.sqeMem, err = unix.Mmap(r.fd, offSQEs, int(size), access, how); err != nil {
		return errors.Join(err, unix.Munmap(r.mem))
	}
	word := func(offset uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.mem[offset])) }
	r.sqHead, r.sqTail, r.sqFlags = word(p.sq.head), word(p.sq.tail), word(p.sq.flags)
	r.cqHead, r.cqTail = word(p.cq.head), word(p.cq.tail)
	r.sqMask, r.cqMask = p.sqEntries-1, p.cqEntries-1
	r.sqes = unsafe.Slice((*sqe)(unsafe.Pointer(&r.sqeMem[0])), p.sqEntries)
	r.cqes = unsafe.Slice((*cqe)(unsafe.Pointer(&r.mem[p.cq.cqes])), p.cqEntries)
	if p.flags&setupNoSQArray == 0 { // each request stands at its own place in the index
		for i := range p.sqEntries {
			*word(p.sq.array + 4*i) = i
		}
	}
	return nil
}

// register puts the ring into the thread's own table, which saves counting references to its
// descriptor in every enter. Without it the descriptor does as well.
func (r *ring) register() {
	r.enterFD = r.fd
	u := update{offset: ^uint32(0), data: uint64(r.fd)}
	if n, errno := register(r.fd, registerRingFDs, unsafe.Pointer(&u), 1); errno == 0 && n == 1 {
		r.enterFD, r.enterBy = int(u.offset), enterRegisteredRing
	}
}

// close ends the ring; what is under way in it is cancelled. The memory that the kernel may still
// write to is given back only after that.
func (r *ring) close() {
	// ANY|ALL: everything. It cannot fail for good: what is left is cancelled with the ring.
	c := syncCancel{flags: 1<<0 | 1<<2, fd: -1, timeout: unix.NsecToTimespec(1e9)}
	_, _ = register(r.fd, registerSyncCancel, unsafe.Pointer(&c), 1)
	if r.enterFD != r.fd {
		u := update{offset: uint32(r.enterFD)}
		_, _ = register(r.fd, registerRingFDs+1, unsafe.Pointer(&u), 1) // as above
	}
	unix.Close(r.fd)
	_ = unix.Munmap(r.mem) // they are mapped: nothing can fail
	_ = unix.Munmap(r.sqeMem)
}

func (r *ring) full() bool { return r.tail-r.submitted > r.sqMask }

// next is the place of a request, which goes out with the next enter.
func (r *ring) next() *sqe {
	r.tail++
	return &r.sqes[(r.tail-1)&r.sqMask]
}

func (r *ring) pending() uint32 { return r.tail - r.submitted }

// ready is how many outcomes are there to be taken.
func (r *ring) ready() uint32 { return atomic.LoadUint32(r.cqTail) - r.head }

// due reports whether the kernel has something to do that makes outcomes, which it does in enter.
func (r *ring) due() bool {
	return atomic.LoadUint32(r.sqFlags)&(sqTaskrun|sqCQOverflow) != 0
}

// drained reports that all outcomes have been taken.
func (r *ring) drained() bool {
	return r.ready() == 0 && atomic.LoadUint32(r.sqFlags)&sqCQOverflow == 0
}

// take returns the next outcome, of which there must be one.
func (r *ring) take() cqe {
	c := r.cqes[r.head&r.cqMask]
	r.head++
	return c
}

// give tells the kernel that the outcomes taken so far may be overwritten.
func (r *ring) give() { atomic.StoreUint32(r.cqHead, r.head) }

// flush hands over all that is pending.
func (r *ring) flush() error {
	for range flushes {
		if r.pending() == 0 {
			return nil
		}
		if err := r.enter(0, 0, nil, 0); err != nil {
			return err
		}
	}
	return errStuck
}

// enter is io_uring_enter. What goes wrong for a moment only (a signal, the deadline, no memory for
// a request, outcomes that want to be taken first) is no error: the caller turns again.
func (r *ring) enter(want uint32, flags uintptr, arg unsafe.Pointer, size uintptr) error {
	atomic.StoreUint32(r.sqTail, r.tail)
	n, _, errno := syscall.RawSyscall6(unix.SYS_IO_URING_ENTER, uintptr(r.enterFD),
		uintptr(r.pending()), uintptr(want), flags|r.enterBy, uintptr(arg), size)
	switch errno {
	case 0:
		r.submitted += uint32(n)
		return nil
	case unix.EINTR, unix.ETIME, unix.EAGAIN, unix.EBUSY:
		return nil
	case unix.EEXIST, unix.EINVAL: // the latter where the ring is in a table of its thread's
		return fmt.Errorf("io_uring_enter: %w; the ring may belong to another thread", errno)
	}
	return fmt.Errorf("io_uring_enter: %w", errno)
}

// files makes room for n files of the ring's own.
func (r *ring) files(n int) error {
	fds := make([]int32, n)
	for i := range fds {
		fds[i] = -1
	}
	_, errno := register(r.fd, registerFiles, unsafe.Pointer(&fds[0]), n)
	if errno != 0 {
		return fmt.Errorf("register %d files: %w", n, errno)
	}
	return nil
}

// file makes *fd the i-th of them.
func (r *ring) file(i int, fd *int32) error {
	u := update{offset: uint32(i), data: uint64(uintptr(unsafe.Pointer(fd)))}
	if _, errno := register(r.fd, registerFilesUpdate, unsafe.Pointer(&u), 1); errno != 0 {
		return errno
	}
	return nil
}

// atLeast is the smallest power of two that is not below n.
func atLeast(n int) uint32 { return 1 << bits.Len(uint(max(n, 1)-1)) }
