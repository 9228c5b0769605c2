package distributed

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/portguard"
)

// numberMost is the largest number of a load's generators.
const numberMost = 4096

// greetings is the number of concurrent connections beside those of the generators: of clients that
// have not sent a valid hello message yet.
const greetings = 256

// refusals is the number of refused generators that are logged, so that repeated attempts cannot
// fill a log. Clients without the key are only counted.
const refusals = 20

// Lab collects generators, one for each index below their number, and runs a load with them.
type Lab struct {
	Limits Limits
	Say    func(line string) // receives progress messages; may be nil

	number   int
	version  string
	key      Key
	listener net.Listener

	mu      sync.Mutex
	begun   atomic.Bool
	here    map[int]*member
	missing int           // generators that have no welcome message yet
	come    chan struct{} // closed when all have one
	over    bool
	refused int
}

// Listen opens a lab for a number of generators of the same version, at an address such as
// 127.0.0.1:0. Without a host it listens only on 127.0.0.1.
func Listen(address string, number int, version string) (*Lab, error) {
	id, err := certify()
	if err != nil {
		return nil, fmt.Errorf("make a certificate for the coordinator: %w", err)
	}
	return ListenAs(id, address, number, version)
}

// ListenAs is Listen with an existing identity.
func ListenAs(id Identity, address string, number int, version string) (*Lab, error) {
	if number < 1 || number > numberMost {
		return nil, fmt.Errorf("the number of generators must be 1 to %[2]d, got "+
			"%[1]d", number, numberMost)
	}
	if strings.HasPrefix(address, ":") {
		address = "127.0.0.1" + address
	}
	if _, _, err := portguard.Fit(number, number, 1); err != nil {
		return nil, fmt.Errorf("listen for %d generators: %w", number, err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for generators: %w", err)
	}
	return open(tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS13,
		Certificates: []tls.Certificate{id.certificate}}), id.key, number, version), nil
}

// open returns a lab with a listener.
func open(l net.Listener, key Key, number int, version string) *Lab {
	lab := &Lab{number: number, version: version, key: key, missing: number,
		here: map[int]*member{}, come: make(chan struct{})}
	lab.listener = portguard.New(l, portguard.Options{Most: number + greetings,
		Report: lab.reportRefused})
	go lab.accept()
	return lab
}

// Key returns the key of the lab's generators.
func (l *Lab) Key() Key { return l.key }

// Addr returns the address on which it listens.
func (l *Lab) Addr() string { return l.listener.Addr().String() }

// Number returns the number of generators that it waits for.
func (l *Lab) Number() int { return l.number }

// Complete reports whether all generators have connected.
func (l *Lab) Complete() bool {
	select {
	case <-l.come:
		return true
	default:
		return false
	}
}

// Begun reports whether the load's start was agreed.
func (l *Lab) Begun() bool { return l.begun.Load() }

// Close disconnects all generators, which stops their loads.
func (l *Lab) Close() error {
	err := l.listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for _, m := range l.here {
		m.Close() //nolint:errcheck // it is gone, or detects it
	}
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (l *Lab) accept() {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return // the listener is closed
		}
		go l.greet(&line{Conn: conn})
	}
}

// greet reads the hello message and accepts or refuses the generator.
func (l *Lab) greet(c *line) {
	var f helloForm
	// The first message includes the TLS handshake, which has the same time limit.
	_, body, err := c.hear(helloIn, hello)
	if err == nil {
		err = read(body, &f)
	}
	if err == nil && !same(f.Token, l.key.Token) { // without it, nothing else is reported
		err = errors.New("the generator's token is not the token of this load: use the key that " +
			"this load wrote")
	}
	if err != nil {
		portguard.DenyConn(c.Conn)
		c.refuse(err)
		return
	}
	portguard.AdmitConn(c.Conn)
	if err = l.accepted(c, &f); err == nil {
		return
	}
	from := c.RemoteAddr().String()
	c.refuse(err)
	l.mu.Lock()
	l.refused++
	notify := l.refused <= refusals && !l.over
	l.mu.Unlock()
	if notify {
		l.say("refused a generator at " + from + ": " + lost(err))
	}
}

// refuse sends the reason, and disconnects.
func (c *line) refuse(why error) {
	_ = c.tell(refused, textForm{plain(why.Error())}) // it may be gone
	c.Close()                                         //nolint:errcheck // it may be gone
}

// reportRefused reports connections of clients without the key.
func (l *Lab) reportRefused(n portguard.Refused) {
	l.say("refused " + n.Connections() + " without the key of this load")
}

func (l *Lab) say(line string) {
	if l.Say != nil {
		l.Say(line)
	}
}

// accepted accepts a generator with the key, and welcomes it.
func (l *Lab) accepted(c *line, f *helloForm) error {
	m, err := l.take(c, f)
	if err != nil {
		return err
	}
	err = c.send(welcome, nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.here[f.Index] != m {
		return fmt.Errorf("generator %d has connected again", f.Index)
	}
	if err != nil { // it may come again
		delete(l.here, f.Index)
		return err
	}
	m.welcomed = true
	if l.missing--; l.missing == 0 {
		close(l.come)
	}
	return nil
}

// take takes a valid generator's place, also that of one that has left while others are missing.
func (l *Lab) take(c *line, f *helloForm) (*member, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.here[f.Index]
	switch {
	case l.over:
		return nil, errors.New("the load has already ended")
	case f.Version != l.version:
		return nil, fmt.Errorf("the generator has version %s of prony and the coordinator "+
			"version %s: use the same version for both", plain(f.Version), l.version)
	case f.Index < 0 || f.Index >= l.number:
		return nil, fmt.Errorf("the index %d of the generator is outside of the range 0 to "+
			"%d", f.Index, l.number-1)
	case before != nil && (l.missing == 0 || before.waits()):
		return nil, fmt.Errorf("generator %d is already connected, from %s", f.Index,
			before.generator.Name)
	}
	if before != nil {
		before.Close() //nolint:errcheck // it is gone
		if before.welcomed {
			l.missing++
		}
	}
	m := &member{line: c}
	m.generator.Index, m.generator.Name = f.Index, plain(f.Name)
	l.here[f.Index] = m
	return m, nil
}

// waits reports whether a generator without an order is still connected. It sends nothing until it
// has one.
func (c *line) waits() bool {
	if c.SetReadDeadline(clock.Wall().Add(10*time.Millisecond)) != nil {
		return false
	}
	_, err := c.Read(make([]byte, 1))
	late, is := errors.AsType[net.Error](err)
	return is && late.Timeout()
}

// gather waits until all generators have connected.
func (l *Lab) gather(ctx context.Context) ([]*member, error) {
	patience := time.NewTimer(l.Limits.Gather)
	defer patience.Stop()
	began := clock.Mono()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-patience.C:
	case <-l.come:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]*member, l.number)
	missing, first := 0, -1
	for i := range all {
		if all[i] = l.here[i]; all[i] != nil {
			continue
		}
		if missing++; first < 0 {
			first = i
		}
	}
	if missing > 0 {
		return nil, fmt.Errorf("wait for %d generators: %d did not connect within %v; the first "+
			"missing one is generator %d", l.number, missing,
			time.Duration(clock.Mono()-began).Round(time.Second), first)
	}
	return all, nil
}
