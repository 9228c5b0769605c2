package enginetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"testing"
	"time"
)

// String describes the recorded events of each slot.
func (h *ear) String() string {
	var b bytes.Buffer
	for i, s := range h.slots {
		if i == 10 {
			fmt.Fprintf(&b, " … of %d", len(h.slots))
			break
		}
		fmt.Fprintf(&b, "[opened %d, %d bytes, %v]", s.opened, len(s.got), s.closed)
	}
	return b.String()
}

// largeRequests tests requests of 32 MiB to a server that reads them in pieces with pauses. The
// kernel takes them in parts, and they must arrive complete, one after the other.
func (s *suite) largeRequests(t *testing.T) {
	body := pattern(32 << 20)
	want := sha256.Sum256(body)
	addr := s.listen(t, "127.0.0.1:0", func(c *peer) {
		buf := make([]byte, 512<<10)
		for {
			h := sha256.New()
			for n := 0; n < len(body); {
				k, err := io.ReadFull(c, buf)
				if err != nil {
					return
				}
				h.Write(buf)
				n += k
				time.Sleep(time.Millisecond)
			}
			_, _ = c.Write(h.Sum(nil)) // a lost answer fails the test anyway
		}
	})
	h := s.engine(t, addr, 1)
	h.open()
	for range 2 {
		h.slots[0].got = nil
		h.Send(0, body)
		h.pump("answer", func() bool {
			return len(h.slots[0].got) == sha256.Size || h.slots[0].closed != nil
		})
		if !bytes.Equal(h.slots[0].got, want[:]) {
			t.Fatalf("the server read other bytes; heard %v", h)
		}
	}
}

// sized reads numbers and responds to each with that many bytes.
func sized(c *peer) {
	for {
		var size [4]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		if _, err := c.Write(pattern(int(binary.LittleEndian.Uint32(size[:])))); err != nil {
			return
		}
	}
}

// answersOfAllSizes tests that responses around the sizes of read buffers arrive complete, and that
// the connection stays usable.
func (s *suite) answersOfAllSizes(t *testing.T) {
	h := s.engine(t, s.listen(t, "127.0.0.1:0", sized), 1)
	h.open()
	for _, size := range []int{1, 1000, 4 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20} {
		for _, n := range []int{size - 1, size, size + 1, 2*size + 7, 1} {
			if n == 0 {
				continue
			}
			h.slots[0].got = nil
			h.Send(0, binary.LittleEndian.AppendUint32(nil, uint32(n)))
			h.pump("answer", func() bool {
				return len(h.slots[0].got) >= n || h.slots[0].closed != nil
			})
			if !bytes.Equal(h.slots[0].got, pattern(n)) || h.slots[0].closed != nil {
				t.Fatalf("answer of %d bytes: heard %v", n, h)
			}
		}
	}
}

// bytesStayApart tests many connections with different small and large texts in flight at the same
// time. No byte may arrive at another connection, twice, or in another order.
func (s *suite) bytesStayApart(t *testing.T) {
	const slots, rounds = 50, 40
	h := s.engine(t, s.listen(t, "127.0.0.1:0", echo), slots)
	var sent [slots][]byte
	var round [slots]int
	next := func(i int) {
		round[i]++
		// Sizes from 1 byte to 80 kB; each connection gets all of them.
		n := 1 + (i*7919+round[i]*104729)%(1<<(1+(i+round[i])%17))
		sent[i] = pattern(n)
		for k := range sent[i] {
			sent[i][k] ^= byte(i) * 5
		}
		h.slots[i].got = h.slots[i].got[:0]
		h.Send(i, sent[i])
	}
	h.onOpened = next
	h.onReceived = func(i int) {
		got := h.slots[i].got
		if len(got) < len(sent[i]) {
			return
		}
		if !bytes.Equal(got, sent[i]) {
			t.Fatalf("slot %d: %d bytes came back for %d, or others", i, len(got), len(sent[i]))
		}
		if round[i] < rounds {
			next(i)
		} else {
			round[i]++
		}
	}
	h.open()
	h.pump("rounds", func() bool {
		for i := range round {
			if round[i] <= rounds {
				return false
			}
		}
		return true
	})
	for i, s := range h.slots {
		if s.opened != 1 || s.closed != nil {
			t.Fatalf("slot %d: %v", i, h)
		}
	}
}

func (s *suite) manyConnects(t *testing.T) {
	slots := 1500 // of four digits
	if s.server != nil {
		slots = 100 // handshakes take CPU time
	}
	h := s.engine(t, s.listen(t, "127.0.0.1:0", echo), slots)
	want := func(i int) string { return fmt.Sprintf("%04d", i) }
	h.onOpened = func(i int) { h.Send(i, []byte(want(i))) }
	h.open()
	h.all("echo", func(s *told) bool { return len(s.got) == 4 })
	for i, s := range h.slots {
		if s.opened != 1 || s.closed != nil || string(s.got) != want(i) {
			t.Fatalf("slot %d: opened %d times, got %q, closed %v", i, s.opened, s.got, s.closed)
		}
	}
}

func (s *suite) version6(t *testing.T) {
	h := s.engine(t, s.listen(t, "[::1]:0", echo), 2)
	h.open()
	h.Send(1, []byte("six"))
	h.pump("echo", func() bool { return string(h.slots[1].got) == "six" })
	// An IPv4-mapped IPv6 address is IPv4.
	addr := s.listen(t, "127.0.0.1:0", echo)
	h = s.engine(t, netip.AddrPortFrom(netip.AddrFrom16(addr.Addr().As16()), addr.Port()), 1)
	h.open()
	h.Send(0, []byte("four"))
	h.pump("echo", func() bool { return string(h.slots[0].got) == "four" })
}

// noAllocations tests that nothing is allocated between write and response. Over TLS, the server
// allocates once when it looks for a request, and crypto/tls, if it does the engine's work, for
// head and rest of a response.
func (s *suite) noAllocations(t *testing.T) {
	h := s.engine(t, s.listen(t, "127.0.0.1:0", echo), 1)
	h.open()
	h.slots[0].got = make([]byte, 0, 1<<20)
	request := []byte("hello")
	round := func(n int) {
		for range n {
			want := len(h.slots[0].got) + len(request)
			h.Send(0, request)
			h.pump("echo", func() bool { return len(h.slots[0].got) >= want })
		}
	}
	round(100)
	// The runtime can allocate now and then, as can servers of earlier tests that are ending. An
	// engine that allocates does so in every round.
	var n uint64
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		round(1000)
		runtime.ReadMemStats(&after)
		if n = after.Mallocs - before.Mallocs; n <= 1000*s.allocates+100 {
			return
		}
	}
	t.Errorf("%d allocations for 1000 round trips", n)
}
