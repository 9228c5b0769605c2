package uring

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// buffers are what the kernel writes responses into: a ring of buffers, shared by all connections.
// The kernel takes a buffer only when bytes have come, so ten thousand idle connections occupy
// none.
//
// Incremental buffers (6.12) are used up piece by piece: a small response takes only what it needs,
// and a large one all of the rest, so one size fits both.
type buffers struct {
	mem     []byte // the ring, followed by the buffers
	data    []byte // the buffers
	size    int
	entries []bufferEntry
	word    *uint32  // the word whose upper half is the ring's tail
	used    []uint32 // filled bytes of each buffer
	tail    uint16
	partial bool // incremental
}

// open registers n buffers, a power of two, as group 0 of the ring. They are incremental if the
// kernel supports it, unless complete is set.
func (b *buffers) open(r *ring, n, size int, complete bool) error {
	var err error
	page := os.Getpagesize()
	ringSize := (n*int(unsafe.Sizeof(bufferEntry{})) + page - 1) / page * page
	b.mem, err = unix.Mmap(-1, 0, ringSize+n*size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("map %d buffers of %d bytes: %w", n, size, err)
	}
	b.data, b.size, b.used = b.mem[ringSize:], size, make([]uint32, n)
	first := unsafe.Pointer(&b.mem[0]) // the kernel requires page alignment
	b.entries = unsafe.Slice((*bufferEntry)(first), n)
	b.word = (*uint32)(unsafe.Add(first, unsafe.Offsetof(bufferEntry{}.id)))
	reg := bufferRegistration{addr: uint64(uintptr(first)), entries: uint32(n)}
	errno := unix.EINVAL
	if !complete {
		reg.flags = buffersIncremental
		_, errno = register(r.fd, registerBuffers, unsafe.Pointer(&reg), 1)
		b.partial = errno == 0
	}
	if errno == unix.EINVAL {
		reg.flags = 0
		_, errno = register(r.fd, registerBuffers, unsafe.Pointer(&reg), 1)
	}
	if errno != 0 {
		b.close()
		return fmt.Errorf("register %d buffers: %w", n, errno)
	}
	for i := range n {
		b.put(uint16(i))
	}
	b.publish()
	return nil
}

func (b *buffers) close() { _ = unix.Munmap(b.mem) } // cannot fail, because mem is mapped

// take returns the bytes of the next buffer of an outcome, up to n, and the outcome's flags for the
// buffer after it. A used-up buffer is queued for the kernel, which gets it with the next publish:
// the bytes are valid until then.
//
// The buffers of one outcome (a bundle) have consecutive positions and numbers in the ring, because
// buffers are used up, reported and returned in the order of the ring.
func (b *buffers) take(n int32, flags uint32) ([]byte, uint32) {
	id := flags >> cqeBufferShift
	from := b.used[id]
	n = min(n, int32(uint32(b.size)-from))
	if flags&cqeBufferMore != 0 {
		b.used[id] += uint32(n)
	} else {
		b.put(uint16(id))
	}
	offset := id*uint32(b.size) + from
	next := (id + 1) & uint32(len(b.entries)-1)
	return b.data[offset : offset+uint32(n)], next<<cqeBufferShift | flags&(1<<cqeBufferShift-1)
}

func (b *buffers) put(id uint16) {
	b.used[id] = 0
	e := &b.entries[int(b.tail)&(len(b.entries)-1)]
	e.addr = uint64(uintptr(unsafe.Pointer(&b.data[int(id)*b.size])))
	e.len, e.id = uint32(b.size), id
	b.tail++
}

// publish makes returned buffers visible to the kernel. Go has no atomic 16-bit store; the other
// field in the same word, which precedes the tail on all little-endian machines, also belongs to
// this side.
func (b *buffers) publish() {
	atomic.StoreUint32(b.word, uint32(b.entries[0].id)|uint32(b.tail)<<16)
}
