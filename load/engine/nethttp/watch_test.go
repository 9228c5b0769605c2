package nethttp

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// FuzzFrames compares the results of frames for pieces of any size with those of a single read.
func FuzzFrames(f *testing.F) {
	const upgrade = "HTTP/1.1 101 Switching Protocols\r\n\r\n"
	long := append([]byte{0x82, 126, 1, 0}, make([]byte, 256)...)
	f.Add([]byte(upgrade+"\x81\x02hi\x89\x00"), 1)
	f.Add(append([]byte(upgrade+"\x81\x02hi"), append(long, 0x81, 0x81)...), 7)
	f.Add([]byte(upgrade+"\x81\x7f\x00\x00\x00\x00\x00\x00\x00\x01x\x88\x80"), 3)
	f.Fuzz(func(t *testing.T, all []byte, size int) {
		size = max(size%64, 1)
		masked, c := false, &frames{}
		for at := 0; at < len(all) && !masked; at += size {
			masked = c.masked(all[at:min(at+size, len(all))])
		}
		if want := atOnce(all); masked != want {
			t.Errorf("masked %v, want %v", masked, want)
		}
	})
}

func atOnce(b []byte) bool {
	_, b, _ = bytes.Cut(b, []byte(opening))
	for len(b) >= 2 {
		n, skip := uint64(b[1]&0x7f), 2
		switch {
		case b[1] >= 0x80:
			return true
		case n == 126 && len(b) >= 4:
			n, skip = uint64(binary.BigEndian.Uint16(b[2:])), 4
		case n == 127 && len(b) >= 10:
			n, skip = binary.BigEndian.Uint64(b[2:]), 10
		case n >= 126:
			return false
		}
		b = b[skip:]
		b = b[min(n, uint64(len(b))):]
	}
	return false
}
