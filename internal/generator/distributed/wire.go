package distributed

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
	"unicode"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/jsontree"
	"prony.example/load"
)

// A message has four bytes with the length of the following bytes, most significant first, then its
// kind, then JSON or the encoding of package load.
const (
	hello   = 'h' // generator: its identity
	ready   = 'y' // it is connected to the service and ready
	told    = 'c' // its clocks
	piece   = 'p' // a second of its load
	ended   = 'e' // its load has ended
	books   = 'b' // all measurements
	failed  = 'f' // reason of a failure
	welcome = 'v' // lab: the generator is accepted
	order   = 'o' // the load, when all are there
	ask     = 'a' // requests the clocks
	start   = 's' // start time
	stop    = 'x' // stop now and report
	word    = 'w' // permits sending the books
	thanks  = 't' // the books were accepted
	refused = 'r' // reason of the refusal
)

// longest holds the largest size in bytes of each kind of message, including the kind.
var longest = map[byte]int{
	hello: 1 << 12, ready: 1 << 12, told: 1 << 7, piece: 1 << 20, ended: 1 << 12, books: 16 << 20,
	failed: 1 << 13, order: 64 << 20, welcome: 1, ask: 1, start: 1 << 7, stop: 1, word: 1,
	thanks: 1, refused: 1 << 13,
}

type helloForm struct {
	Version string `json:"version"`
	Token   string `json:"token"`
	Index   int    `json:"index"`
	Name    string `json:"name"`
}

type readyForm struct {
	Engine load.EngineInfo `json:"engine"`
}

type clockForm struct {
	Mono int64 `json:"mono"` // ns
	Wall int64 `json:"wall"` // Unix time, ns
}

type startForm struct {
	At int64 `json:"at"` // by the generator's monotonic clock, ns
}

type endedForm struct {
	LateNs int64 `json:"lateNs"` // by which its start message was later than the agreed start
}

type textForm struct {
	Text string `json:"text"`
}

// line is a connection for messages. One goroutine reads; any may write.
type line struct {
	net.Conn
	mu       sync.Mutex // serializes writers
	ownPulse *pulse     // of the reader; may be nil
}

// send writes a message within a time limit.
func (c *line) send(kind byte, body []byte) error {
	if len(body)+1 > longest[kind] {
		return fmt.Errorf("a message of %d bytes is too long; the limit is %d bytes", len(body),
			longest[kind])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.SetWriteDeadline(clock.Wall().Add(wordIn)); err != nil {
		return err
	}
	head := binary.BigEndian.AppendUint32(make([]byte, 0, 5+len(body)), uint32(len(body)+1))
	_, err := c.Write(append(append(head, kind), body...))
	return err
}

// tell writes a message with JSON.
func (c *line) tell(kind byte, form any) error {
	body, err := json.Marshal(form)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	return c.send(kind, body)
}

// errGarbage reports an invalid message.
var errGarbage = errors.New("sent data that is not a message")

// hear reads the next message, which must have one of the given kinds and arrive in time. It
// allocates memory only for bytes that have arrived.
func (c *line) hear(within time.Duration, kinds ...byte) (kind byte, body []byte, err error) {
	if err := c.SetReadDeadline(clock.Wall().Add(within)); err != nil {
		return 0, nil, err
	}
	from := &patient{c, within, clock.Mono()}
	var head [5]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return 0, nil, err
	}
	kind = head[4]
	n := int64(binary.BigEndian.Uint32(head[:4])) - 1
	most, known := longest[kind]
	switch {
	case !known || n < 0:
		return 0, nil, errGarbage
	case !bytes.Contains(kinds, []byte{kind}):
		return 0, nil, fmt.Errorf("sent the message %q at the wrong time", kind)
	case n >= int64(most):
		return 0, nil, fmt.Errorf("sent a message of %d bytes, but the limit for this kind is %d "+
			"bytes", n, most)
	}
	var all bytes.Buffer
	if _, err := io.CopyN(&all, from, n); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	return kind, all.Bytes(), nil
}

// patient reads from a line. If the time limit passes because the reader itself stalled, it waits
// as long again, because messages that were sent meanwhile are there.
type patient struct {
	*line
	within time.Duration
	since  int64 // clock.Mono
}

// Read implements io.Reader.
func (p *patient) Read(b []byte) (int, error) {
	for {
		n, err := p.Conn.Read(b)
		late, is := errors.AsType[net.Error](err)
		if n > 0 || !is || !late.Timeout() || !p.ownPulse.stood(p.since) {
			return n, err
		}
		p.since = clock.Mono()
		if err := p.SetReadDeadline(clock.Wall().Add(p.within)); err != nil {
			return 0, err
		}
	}
}

// read decodes JSON strictly.
func read(body []byte, form any) error {
	if err := jsontree.Strict(body, form); err != nil {
		return fmt.Errorf("%w: %w", errGarbage, err)
	}
	return nil
}

// plain makes another program's text printable, and limits its length.
func plain(text string) string {
	const most = 300
	text = strings.ToValidUTF8(text[:min(len(text), most)], "")
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}

// lost describes in words how a connection ended.
func lost(err error) string {
	switch late, is := errors.AsType[net.Error](err); {
	case is && late.Timeout():
		return "stopped responding"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return "disconnected"
	}
	return plain(err.Error())
}
