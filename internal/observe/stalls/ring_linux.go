//go:build linux && !portable

package stalls

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
)

// ring is an event of one core, for all processes, and the memory into which the kernel writes its
// records. If the ring is full, records are lost, and a later record has their number.
type ring struct {
	fd     int
	memory []byte // a control page, then the ring
	piece  []byte // a record that wraps around the ring's end
}

// order is the byte order of records: this machine's.
var order = binary.NativeEndian

// recordHead is the length of a record's head: type, misc, size.
const recordHead = 8

// ringBytes returns the size of a ring with room for some bytes: a number of pages that is a power
// of two. For capacity it is the amount that any user may lock, not counting the control page
// (kernel.perf_event_mlock_kb).
func ringBytes(room int) int {
	size := os.Getpagesize()
	for size < room {
		size *= 2
	}
	return size
}

func openRing(core, room int, attr unix.PerfEventAttr) (*ring, error) {
	attr.Size = uint32(unsafe.Sizeof(attr))
	fd, err := unix.PerfEventOpen(&attr, -1, core, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("open an event of the kernel: %w%s", err, permission(err))
	}
	memory, err := unix.Mmap(fd, 0, os.Getpagesize()+ringBytes(room),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("map the event's ring buffer: %w%s",
			err, permission(err)),
			unix.Close(fd))
	}
	return &ring{fd: fd, memory: memory}, nil
}

// permission returns a remedy if the kernel refused an event, or "".
func permission(err error) string {
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return ": run as root, give the program CAP_PERFMON, or run " +
			"sysctl -w kernel.perf_event_paranoid=0 as root"
	}
	return ""
}

// records reads the records since the last call. If the ring had no room for another tick, it
// returns the time (clock.Mono) just before it made room: all records so far are earlier, and all
// others are later. Otherwise it returns 0.
func (r *ring) records(read func(kind uint32, record []byte)) (fullNs int64) {
	page := (*unix.PerfEventMmapPage)(unsafe.Pointer(&r.memory[0]))
	head := atomic.LoadUint64(&page.Data_head)
	position := page.Data_tail // the kernel only reads it
	for position < head {
		b := r.bytes(position, recordHead)
		kind, size := order.Uint32(b), int(order.Uint16(b[6:]))
		if size < recordHead {
			panic("stalls: the kernel wrote an event record without a header")
		}
		read(kind, r.bytes(position, size))
		position += uint64(size)
	}
	if head-page.Data_tail > uint64(len(r.memory)-os.Getpagesize()-tickBytes) {
		fullNs = clock.Mono()
	}
	atomic.StoreUint64(&page.Data_tail, position)
	return fullNs
}

// bytes returns a part of the ring as one slice.
func (r *ring) bytes(position uint64, size int) []byte {
	data := r.memory[os.Getpagesize():]
	begin := int(position % uint64(len(data)))
	if begin+size <= len(data) {
		return data[begin : begin+size]
	}
	r.piece = append(r.piece[:0], data[begin:]...)
	r.piece = append(r.piece, data[:size-(len(data)-begin)]...)
	return r.piece
}

func (r *ring) close() error {
	return errors.Join(unix.Munmap(r.memory), unix.Close(r.fd))
}
