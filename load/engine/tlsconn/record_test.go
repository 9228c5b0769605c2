package tlsconn

import (
	"bytes"
	"crypto/tls"
	"encoding/hex"
	"strings"
	"testing"
)

// unhex reads hexadecimal digits with any space between.
func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func keyed(t testing.TB, id uint16, secret []byte) *half {
	t.Helper()
	h := &half{}
	if err := h.key(suites[id], secret); err != nil {
		t.Fatal(err)
	}
	return h
}

// The application data of RFC 8448, section 3: 50 bytes that count from 0 in each direction, then
// the alerts that end it. The server's ticket is the record with number 0 before them.
func TestVectors(t *testing.T) {
	const id = tls.TLS_AES_128_GCM_SHA256
	data := make([]byte, 50)
	for i := range data {
		data[i] = byte(i)
	}
	check := func(name, secret, iv string, seq uint64, sealed, end string) {
		t.Helper()
		h := keyed(t, id, unhex(t, secret))
		if h.seq = seq; !bytes.Equal(h.iv[:], unhex(t, iv)) {
			t.Errorf("%s: iv %x, want %s", name, h.iv, iv)
		}
		got := h.seal(nil, data)
		got = h.record(got, typeAlert, []byte{1, alertCloseNotify})
		if want := unhex(t, sealed+end); !bytes.Equal(got, want) {
			t.Errorf("%s: sealed as\n%x, want\n%x", name, got, want)
		}
		h.seq = seq
		for n, want := range []string{string(data), "\x01\x00"} {
			plain, kind, err := h.open(got[:len(want)+addedSize])
			if string(plain) != want || err != nil || kind != []byte{typeData, typeAlert}[n] {
				t.Errorf("%s: opened as %x of type %d, %v", name, plain, kind, err)
			}
			got = got[len(want)+addedSize:]
		}
	}
	check("client", `9e 40 64 6c e7 9a 7f 9d c0 5a f8 88 9b ce 65 52 87 5a fa 0b 06 df 00 87
		f7 92 eb b7 c1 75 04 a5`, "5b 78 92 3d ee 08 57 90 33 e5 23 d9", 0,
		`17 03 03 00 43 a2 3f 70 54 b6 2c 94 d0 af fa fe 82 28 ba 55 cb ef ac ea 42 f9 14 aa 66
		bc ab 3f 2b 98 19 a8 a5 b4 6b 39 5b d5 4a 9a 20 44 1e 2b 62 97 4e 1f 5a 62 92 a2 97 70
		14 bd 1e 3d ea e6 3a ee bb 21 69 49 15 e4`,
		"17 03 03 00 13 c9 87 27 60 65 56 66 b7 4d 7f f1 15 3e fd 6d b6 d0 b0 e3")
	check("server", `a1 1a f9 f0 55 31 f8 56 ad 47 11 6b 45 a9 50 32 82 04 b4 f4 4b fb 6b 3a 4b
		4f 1f 3f cb 63 16 43`, "cf 78 2b 88 dd 83 54 9a ad f1 e9 84", 1,
		`17 03 03 00 43 2e 93 7e 11 ef 4a c7 40 e5 38 ad 36 00 5f c4 a4 69 32 fc 32 25 d0 5f 82
		aa 1b 36 e3 0e fa f9 7d 90 e6 df fc 60 2d cb 50 1a 59 a8 fc c4 9c 4b f2 e5 f0 a2 1c 00
		47 c2 ab f3 32 54 0d d0 32 e1 67 c2 95 5d`,
		"17 03 03 00 13 b5 8f d6 71 66 eb f5 99 d2 47 20 cf be 7e fa 7a 88 64 a9")
}

// One half decrypts what the other encrypts, in every suite, at the sizes around those of a record,
// and after key updates.
func TestSealAndOpen(t *testing.T) {
	for id, s := range suites {
		name := tls.CipherSuiteName(id)
		secret := bytes.Repeat([]byte{7}, s.hash().Size())
		out, in := keyed(t, id, secret), keyed(t, id, secret)
		for _, n := range []int{0, 1, plainMax - 1, plainMax, plainMax + 1, 3*plainMax + 5} {
			data := bytes.Repeat([]byte{byte(n), 1, 0}, n/3+1)[:n]
			sealed := out.seal(nil, data)
			if len(sealed) > room(n) {
				t.Errorf("%s: %d bytes sealed take %d, room for %d", name, n, len(sealed), room(n))
			}
			var got []byte
			for len(sealed) > 0 {
				size, err := size(sealed)
				if err != nil || size > len(sealed) {
					t.Fatalf("%s: record of %d in %d bytes: %v", name, size, len(sealed), err)
				}
				plain, kind, err := in.open(sealed[:size])
				if err != nil || kind != typeData || len(plain) > plainMax {
					t.Fatalf("%s: %d bytes of type %d: %v", name, len(plain), kind, err)
				}
				got, sealed = append(got, plain...), sealed[size:]
			}
			if !bytes.Equal(got, data) {
				t.Errorf("%s: %d bytes came back as %d, or others", name, n, len(got))
			}
			if err := out.update(); err != nil {
				t.Fatal(err)
			}
			if err := in.update(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// answers are what a server sends in the benchmarks: a small response, and a megabyte.
var answers = map[string]int{"200 B": 200, "1 MiB": 1 << 20}

// A round trip without the kernel: a request is encrypted, its response decrypted in place.
func BenchmarkRound(b *testing.B) {
	for name, size := range answers {
		b.Run(name, func(b *testing.B) {
			const id = tls.TLS_AES_128_GCM_SHA256
			secret := make([]byte, 32)
			server, client := keyed(b, id, secret), keyed(b, id, secret)
			request := make([]byte, 100)
			sealed, out := make([]byte, 0, room(len(request))), make([]byte, 0, room(size))
			answer := make([]byte, size)
			out = server.seal(out, answer)
			come := make([]byte, len(out))
			in := reader{half: *keyed(b, id, secret), room: &rooms{}}
			b.ReportAllocs()
			b.SetBytes(int64(size))
			for b.Loop() {
				sealed = client.seal(sealed[:0], request)
				copy(come, out)
				in.seq = 0
				got := 0
				for rest := come; ; {
					data, next, err := in.next(rest)
					if err != nil {
						b.Fatal(err)
					}
					if data == nil {
						break
					}
					got, rest = got+len(data), next
				}
				if got != size {
					b.Fatalf("%d bytes, want %d", got, size)
				}
			}
		})
	}
}

// room returns the most bytes that seal appends for n bytes.
func room(n int) int { return n + (n/plainMax+1)*addedSize }
