package uring

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The subset of the kernel's interface that is used here, from include/uapi/linux/io_uring.h;
// golang.org/x/sys has only the numbers of the three system calls. Comments have the kernel version
// of features after 5.19.
const (
	setupCQSize       = 1 << 3
	setupSubmitAll    = 1 << 7
	setupCoopTaskrun  = 1 << 8
	setupTaskrunFlag  = 1 << 9
	setupSingleIssuer = 1 << 12 // 6.0
	setupDeferTaskrun = 1 << 13 // 6.1
	setupNoSQArray    = 1 << 16 // 6.6

	featSingleMmap = 1 << 0
	featNoDrop     = 1 << 1
	featFastPoll   = 1 << 5
	featExtArg     = 1 << 8
	featCQESkip    = 1 << 11
	featBundle     = 1 << 14 // 6.10
	featMinTimeout = 1 << 15 // 6.12, as are absolute timers and incremental buffers

	enterGetEvents      = 1 << 0
	enterExtArg         = 1 << 3
	enterRegisteredRing = 1 << 4
	enterAbsTimer       = 1 << 5

	sqCQOverflow = 1 << 1
	sqTaskrun    = 1 << 2

	opPollAdd     = 6
	opAsyncCancel = 14
	opConnect     = 16
	opSend        = 26
	opRecv        = 27

	sqeFixedFile    = 1 << 0
	sqeBufferSelect = 1 << 5
	sqeSkipSuccess  = 1 << 6

	recvPollFirst = 1 << 0
	recvMultishot = 1 << 1
	recvBundle    = 1 << 4

	cancelAll = 1 << 0

	cqeBuffer     = 1 << 0
	cqeMore       = 1 << 1
	cqeBufferMore = 1 << 4

	cqeBufferShift = 16

	registerFiles       = 2
	registerFilesUpdate = 6
	registerRingFDs     = 20
	registerBuffers     = 22
	registerSyncCancel  = 24 // 6.0
	buffersIncremental  = 2  // 6.12

	offSQRing = 0
	offSQEs   = 0x10000000
)

// sqe is a submission queue entry: a request.
type sqe struct {
	op       uint8
	flags    uint8
	ioprio   uint16
	fd       int32
	offset   uint64
	addr     uint64
	len      uint32
	opFlags  uint32
	userData uint64
	buf      uint16
	person   uint16
	file     int32
	_        [2]uint64
}

// cqe is a completion queue entry: an outcome.
type cqe struct {
	userData uint64
	res      int32
	flags    uint32
}

type sqOffsets struct {
	head, tail, mask, entries, flags, dropped, array, _ uint32
	_                                                   uint64
}

type cqOffsets struct {
	head, tail, mask, entries, overflow, cqes, flags, _ uint32
	_                                                   uint64
}

type params struct {
	sqEntries, cqEntries, flags, _, _, features, _ uint32
	_                                              [3]uint32
	sq                                             sqOffsets
	cq                                             cqOffsets
}

// waitArg is io_uring_getevents_arg.
type waitArg struct {
	_         uint64
	_         uint32
	minWaitUs uint32 // 6.12
	ts        uint64
}

// bufferEntry is an element of a ring of provided buffers. The first element's tail field is the
// ring's tail.
type bufferEntry struct {
	addr uint64
	len  uint32
	id   uint16
	tail uint16
}

type bufferRegistration struct {
	addr    uint64
	entries uint32
	group   uint16
	flags   uint16
	_       [3]uint64
}

// update is an entry for one of the ring's tables of files or rings.
type update struct {
	offset uint32
	_      uint32
	data   uint64
}

type syncCancel struct {
	addr    uint64
	fd      int32
	flags   uint32
	timeout unix.Timespec
	_       [4]uint64
}

func setup(entries uint32, p *params) (int, syscall.Errno) {
	fd, _, errno := syscall.RawSyscall(unix.SYS_IO_URING_SETUP, uintptr(entries),
		uintptr(unsafe.Pointer(p)), 0)
	return int(fd), errno
}

func register(fd int, op uint32, arg unsafe.Pointer, n int) (int, syscall.Errno) {
	r, _, errno := syscall.RawSyscall6(unix.SYS_IO_URING_REGISTER, uintptr(fd), uintptr(op),
		uintptr(arg), uintptr(n), 0, 0)
	return int(r), errno
}
