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

// ring is the two queues shared with the kernel. This side writes only one end of each: it
// publishes requests by storing the submission queue's tail, and returns outcomes by storing the
// completion queue's head, both after it has written or read the entries.
type ring struct {
	fd       int
	enterFD  int    // fd, or its index in the table of registered rings
	flags    uint32 // of setup
	features uint32
	enterBy  uintptr // flags of every enter

	mem, sqeMem []byte
	sqes        []sqe
	sqHead      *uint32
	sqTail      *uint32
	sqFlags     *uint32
	sqMask      uint32
	tail        uint32 // requests written
	submitted   uint32 // requests that the kernel has accepted

	cqes   []cqe
	cqHead *uint32
	cqTail *uint32
	cqMask uint32
	head   uint32 // outcomes taken

	arg waitArg
	ts  unix.Timespec
}

// rungs are the setups to try, best first. They drop the submission queue without an index array
// (before 6.6), then completions that are processed only on request (before 6.1).
var rungs = []uint32{
	setupSingleIssuer | setupDeferTaskrun | setupTaskrunFlag | setupSubmitAll | setupNoSQArray,
	setupSingleIssuer | setupDeferTaskrun | setupTaskrunFlag | setupSubmitAll,
	setupSingleIssuer | setupCoopTaskrun | setupTaskrunFlag | setupSubmitAll,
}

// flushes bounds the retries if the kernel has no memory for requests.
const flushes = 100

const required = featSingleMmap | featNoDrop | featFastPoll | featExtArg | featCQESkip

// open creates a ring. From then on only the calling thread may use it.
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
	if p.flags&setupNoSQArray == 0 { // each request is at the same position in the index array
		for i := range p.sqEntries {
			*word(p.sq.array + 4*i) = i
		}
	}
	return nil
}

// register registers the ring in the thread's own table, which saves a reference count on its
// descriptor in every enter. If that fails, the descriptor also works.
func (r *ring) register() {
	r.enterFD = r.fd
	u := update{offset: ^uint32(0), data: uint64(r.fd)}
	if n, errno := register(r.fd, registerRingFDs, unsafe.Pointer(&u), 1); errno == 0 && n == 1 {
		r.enterFD, r.enterBy = int(u.offset), enterRegisteredRing
	}
}

// close cancels what is under way and closes the ring. It unmaps memory that the kernel can write
// to only after that.
func (r *ring) close() {
	// ANY|ALL: everything. Errors do not matter, because closing the ring cancels the rest.
	c := syncCancel{flags: 1<<0 | 1<<2, fd: -1, timeout: unix.NsecToTimespec(1e9)}
	_, _ = register(r.fd, registerSyncCancel, unsafe.Pointer(&c), 1)
	if r.enterFD != r.fd {
		u := update{offset: uint32(r.enterFD)}
		_, _ = register(r.fd, registerRingFDs+1, unsafe.Pointer(&u), 1) // as above
	}
	unix.Close(r.fd)
	_ = unix.Munmap(r.mem) // cannot fail, because they are mapped
	_ = unix.Munmap(r.sqeMem)
}

func (r *ring) full() bool { return r.tail-r.submitted > r.sqMask }

// next returns the entry for a request, which is submitted with the next enter.
func (r *ring) next() *sqe {
	r.tail++
	return &r.sqes[(r.tail-1)&r.sqMask]
}

func (r *ring) pending() uint32 { return r.tail - r.submitted }

// ready returns the number of outcomes that can be taken.
func (r *ring) ready() uint32 { return atomic.LoadUint32(r.cqTail) - r.head }

// due reports whether the kernel has pending work that produces outcomes in enter.
func (r *ring) due() bool {
	return atomic.LoadUint32(r.sqFlags)&(sqTaskrun|sqCQOverflow) != 0
}

// drained reports whether all outcomes were taken.
func (r *ring) drained() bool {
	return r.ready() == 0 && atomic.LoadUint32(r.sqFlags)&sqCQOverflow == 0
}

// take returns the next outcome. There must be one.
func (r *ring) take() cqe {
	c := r.cqes[r.head&r.cqMask]
	r.head++
	return c
}

// give returns the outcomes taken so far to the kernel.
func (r *ring) give() { atomic.StoreUint32(r.cqHead, r.head) }

// flush submits all pending requests.
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

// enter calls io_uring_enter. Temporary conditions (a signal, the deadline, no memory for a
// request, outcomes to be taken first) are not errors: the caller tries again.
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
	case unix.EEXIST, unix.EINVAL: // EINVAL: the ring is in another thread's table
		return fmt.Errorf("io_uring_enter: %w; the ring may belong to another thread", errno)
	}
	return fmt.Errorf("io_uring_enter: %w", errno)
}

// files reserves a table of n files in the ring.
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

// file sets the i-th file to *fd.
func (r *ring) file(i int, fd *int32) error {
	u := update{offset: uint32(i), data: uint64(uintptr(unsafe.Pointer(fd)))}
	if _, errno := register(r.fd, registerFilesUpdate, unsafe.Pointer(&u), 1); errno != 0 {
		return errno
	}
	return nil
}

// atLeast returns the smallest power of two that is at least n.
func atLeast(n int) uint32 { return 1 << bits.Len(uint(max(n, 1)-1)) }
