package uring

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// buffers are what the kernel writes answers into: a ring of them, shared by all connections, from
// which it takes one when bytes have come and not before. So ten thousand idle connections hold
// none.
//
// Incremental ones (6.12) are used up piece by piece: a small answer takes only what it needs, and
// a large one the whole rest, so that one size fits both.
type buffers struct {
	mem     []byte // the ring, and behind it the buffers
	data    []byte // the buffers
	size    int
	entries []bufferEntry
	word    *uint32  // the ring's tail, in the upper half
	used    []uint32 // bytes of each buffer that have been filled
	tail    uint16
	partial bool // incremental
}

// open registers n buffers, a power of two, as group 0 of the ring; incremental ones where the
// kernel has them, unless whole ones are asked for.
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
	first := unsafe.Pointer(&b.mem[0]) // the kernel wants a page's beginning
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

func (b *buffers) close() { _ = unix.Munmap(b.mem) } // it is mapped: nothing can fail

// take returns the bytes of the next buffer that an outcome tells of, up to n, and the outcome's
// flags for the buffer after it. A buffer that is used up is queued for the kernel, which sees it
// when it is published: the bytes stay until then.
//
// The buffers of one outcome (a bundle) stand one after the other in the ring, and so do their
// numbers: buffers are used up in the order of the ring, told of in that order, and put back in it.
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

// publish shows the kernel the buffers that were put. There is no atomic store of 16 bits in Go;
// the field in the same word, before the tail on every machine that Linux runs little-endian, is
// this side's too.
func (b *buffers) publish() {
	atomic.StoreUint32(b.word, uint32(b.entries[0].id)|uint32(b.tail)<<16)
}
