package gopprof

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	pprof "github.com/google/pprof/profile"

	"prony/internal/profile"
)

// longest is what the processor's profile is asked for, s. Stop ends it before.
const longest = 3600

// cpu is a session of the processor's profile: a request whose answer comes when it ends.
type cpu struct {
	url    string
	conn   *net.TCPConn
	answer chan answered // holds one: nobody is kept waiting
}

type answered struct {
	data []byte
	err  error
}

// sampling is the function that a program is in while its processor's profile is being taken.
const sampling = "net/http/pprof.sleep"

// startPoll is how often it is looked whether the program has begun.
const startPoll = 5 * time.Millisecond

// startCPU asks for an hour. Half a connection's close ends it: the server's request is cancelled
// by the end of what it reads, its profile stops, and the answer still comes (net/http/pprof.
// Profile sleeps until the request's context ends).
func startCPU(ctx context.Context, base string) (profile.Session, error) {
	address := base + "profile?seconds=" + strconv.Itoa(longest)
	if others, err := samples(ctx, base); err != nil || others {
		if err == nil {
			err = errors.New("its profile is in use: a program has one at a time")
		}
		return nil, fmt.Errorf("read %s: %w", address, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", address, err)
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", request.URL.Host)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", address, err)
	}
	s := &cpu{url: address, conn: conn.(*net.TCPConn), answer: make(chan answered, 1)}
	if err := request.Write(conn); err != nil {
		return nil, fmt.Errorf("read %s: %w", address, errors.Join(err, conn.Close()))
	}
	go s.read(request)
	if err := s.begun(ctx, base); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return s, nil
}

// samples is whether the program's processor profile is being taken.
func samples(ctx context.Context, base string) (bool, error) {
	stacks, err := profile.Get(ctx, client, base+"goroutine?debug=1")
	return bytes.Contains(stacks, []byte(sampling)), err
}

// begun waits until the program is seen to sample.
func (s *cpu) begun(ctx context.Context, base string) error {
	tick := time.NewTicker(startPoll)
	defer tick.Stop()
	for {
		if on, err := samples(ctx, base); err != nil || on {
			return err
		}
		select {
		case a := <-s.answer:
			if a.err == nil {
				a.err = errors.New("it ended at once")
			}
			return a.err
		case <-ctx.Done():
			return fmt.Errorf("read %s: it has not begun: %w", s.url, ctx.Err())
		case <-tick.C:
		}
	}
}

// read waits for the answer, however long.
func (s *cpu) read(request *http.Request) {
	answer, err := http.ReadResponse(bufio.NewReader(s.conn), request)
	if err != nil {
		s.answer <- answered{nil, fmt.Errorf("read %s: %w", s.url, err)}
		return
	}
	data, err := profile.Body(s.url, answer)
	s.answer <- answered{data, err}
}

// Stop ends the request's half and takes the answer.
func (s *cpu) Stop(ctx context.Context) (*pprof.Profile, error) {
	defer func() { _ = s.conn.Close() }() // all was read, or the error told
	if err := s.conn.CloseWrite(); err != nil {
		return nil, fmt.Errorf("end %s: %w", s.url, err)
	}
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("end %s: no answer: %w", s.url, ctx.Err())
	case a := <-s.answer:
		if a.err != nil {
			return nil, a.err
		}
		p, err := profile.Parse(a.data)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", s.url, err)
		}
		profile.Describe(p, "pprof of Go", "event: SIGPROF, 100 a second and core")
		return p, nil
	}
}
