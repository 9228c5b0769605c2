// Package gopprof takes profiles of Go programs that serve net/http/pprof. The CPU profile is
// sampled from Start to Stop. The other profiles are sums since the program's start; the package
// reads them twice and takes the difference.
//
// Non-goals: programs without net/http/pprof, which other collectors profile from outside.
package gopprof

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	pprof "github.com/google/pprof/profile"

	"prony.example/internal/base/clock"
	"prony.example/internal/observe/profile"
)

// Collector takes profiles over net/http/pprof.
type Collector struct{}

// Name returns the name in records.
func (Collector) Name() string { return "pprof" }

// Kinds returns all kinds; lock and offcpu profiles are empty unless the program enabled them.
func (Collector) Kinds() []string { return profile.Kinds }

// Fits returns an error if the subject has no valid address of net/http/pprof.
func (Collector) Fits(s profile.Subject) error {
	if s.PprofURL == "" {
		return errors.New("the process has no net/http/pprof endpoint")
	}
	u, err := url.Parse(s.PprofURL)
	if err != nil {
		return err
	}
	if u.Scheme != "http" || u.Host == "" {
		return fmt.Errorf("%s is not an http address", s.PprofURL)
	}
	return nil
}

// page describes how a sum is read and which value is used.
type page struct {
	path  string
	value string // type of the used value
	note  string
}

// pages lists the pages of kinds that are sums. heap?gc=1 runs a garbage collection that updates
// the profile up to now; the collections are before the window's start and after its end.
var pages = map[string]page{
	profile.Alloc: {"heap?gc=1", "alloc_space", "event: alloc_space of the heap profile, one " +
		"sample per runtime.MemProfileRate bytes, with a garbage collection before and after the " +
		"window"},
	profile.Lock: {"mutex", "delay", "event: mutex profile, attributed to the stacks that " +
		"released a lock"},
	profile.OffCPU: {"block", "delay", "event: block profile of channels, select, locks and " +
		"conditions, without system calls and sleep"},
}

// enable names the function that enables a sum that is empty.
var enable = map[string]string{
	profile.Lock:   "runtime.SetMutexProfileFraction",
	profile.OffCPU: "runtime.SetBlockProfileRate",
}

// Start starts the CPU profile, or reads a sum for the first time.
func (c Collector) Start(ctx context.Context, s profile.Subject, kind string) (profile.Session,
	error) {
	if err := c.Fits(s); err != nil {
		return nil, fmt.Errorf("start pprof of process %d: %w", s.PID, err)
	}
	base := strings.TrimSuffix(s.PprofURL, "/") + "/"
	if kind == profile.CPU {
		return startCPU(ctx, base)
	}
	from, ok := pages[kind]
	if !ok {
		return nil, fmt.Errorf("start pprof of process %d: pprof does not support %q profiles",
			s.PID, kind)
	}
	before, err := read(ctx, base+from.path)
	if err != nil {
		return nil, err
	}
	return &sum{kind: kind, page: from, url: base + from.path, before: before}, nil
}

// client avoids proxies and kept connections, because both would affect the program.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func read(ctx context.Context, address string) (*pprof.Profile, error) {
	data, err := profile.Get(ctx, client, address)
	if err != nil {
		return nil, err
	}
	p, err := profile.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", address, err)
	}
	return p, nil
}

// sum is a session of a profile that sums since the program's start.
type sum struct {
	kind   string
	page   page
	url    string
	before *pprof.Profile
}

// Stop reads the sum again and subtracts the first reading.
func (s *sum) Stop(ctx context.Context) (*pprof.Profile, error) {
	after, err := read(ctx, s.url)
	if err != nil {
		return nil, err
	}
	p, err := difference(s.before, after)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.url, err)
	}
	keep := slices.IndexFunc(p.SampleType, func(t *pprof.ValueType) bool {
		return t.Type == s.page.value
	})
	// The value before it counts the same things: objects or contentions.
	if keep < 1 {
		return nil, fmt.Errorf("read %s: the profile has no value %s with a count",
			s.url, s.page.value)
	}
	p.SampleType = p.SampleType[keep-1 : keep+1]
	p.SampleType[1].Type, p.DefaultSampleType = s.kind, s.kind
	for _, sample := range p.Sample {
		sample.Value = sample.Value[keep-1 : keep+1]
	}
	p = p.Compact()
	notes := []string{s.page.note}
	if total, _ := profile.Total(p); total == 0 && enable[s.kind] != "" {
		notes = append(notes, "empty: the program must call "+enable[s.kind]+" when it starts")
	}
	profile.Describe(p, "pprof of Go", notes...)
	return p, nil
}

// difference subtracts two sums. Rounded estimates can give negative values, which become 0.
func difference(before, after *pprof.Profile) (*pprof.Profile, error) {
	less := before.Copy()
	less.Scale(-1)
	p, err := pprof.Merge([]*pprof.Profile{after, less})
	if err != nil {
		return nil, err
	}
	for _, s := range p.Sample {
		for i := range s.Value {
			s.Value[i] = max(s.Value[i], 0)
		}
	}
	p.TimeNanos, p.DurationNanos = after.TimeNanos, after.TimeNanos-before.TimeNanos
	return p, nil
}

// longest is the requested duration of the CPU profile, in s. Stop ends it earlier.
const longest = 3600

// cpu is a session of the CPU profile: a request whose response arrives at the end.
type cpu struct {
	url    string
	conn   *net.TCPConn
	answer chan answered // buffered, so that the reader never blocks
}

type answered struct {
	data []byte
	err  error
}

// sampling is the function in which a program waits during its CPU profile.
const sampling = "net/http/pprof.sleep"

// startPoll is the time between checks whether the profile has started.
const startPoll = 5 * time.Millisecond

// startCPU requests an hour. Closing the connection's sending half ends the profile: the server
// cancels the request at the end of its input, stops the profile and still sends the response
// (net/http/pprof. Profile sleeps until the request's context ends).
func startCPU(ctx context.Context, base string) (profile.Session, error) {
	address := base + "profile?seconds=" + strconv.Itoa(longest)
	if hasOthers, err := samples(ctx, base); err != nil || hasOthers {
		if err == nil {
			err = errors.New("another profile of the program is running: Go supports one CPU " +
				"profile at a time")
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

// samples reports whether a CPU profile of the program is running.
func samples(ctx context.Context, base string) (bool, error) {
	stacks, err := profile.Get(ctx, client, base+"goroutine?debug=1")
	return bytes.Contains(stacks, []byte(sampling)), err
}

// begun waits until the program samples.
func (s *cpu) begun(ctx context.Context, base string) error {
	for range clock.Every(ctx, startPoll) {
		if enabled, err := samples(ctx, base); err != nil || enabled {
			return err
		}
		select {
		case a := <-s.answer:
			return cmp.Or(a.err, errors.New("the profile ended immediately"))
		default:
		}
	}
	return fmt.Errorf("read %s: the profile did not begin: %w", s.url, ctx.Err())
}

// read waits for the response without a time limit.
func (s *cpu) read(request *http.Request) {
	answer, err := http.ReadResponse(bufio.NewReader(s.conn), request)
	if err != nil {
		s.answer <- answered{nil, fmt.Errorf("read %s: %w", s.url, err)}
		return
	}
	data, err := profile.Body(s.url, answer)
	s.answer <- answered{data, err}
}

// Stop closes the request's half of the connection and returns the profile in the response.
func (s *cpu) Stop(ctx context.Context) (*pprof.Profile, error) {
	defer func() { _ = s.conn.Close() }() // everything was read, or another error is returned
	if err := s.conn.CloseWrite(); err != nil {
		return nil, fmt.Errorf("end %s: %w", s.url, err)
	}
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("end %s: no response: %w", s.url, ctx.Err())
	case a := <-s.answer:
		if a.err != nil {
			return nil, a.err
		}
		p, err := profile.Parse(a.data)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", s.url, err)
		}
		profile.Describe(p, "pprof of Go", "event: SIGPROF, 100 samples per second and core")
		return p, nil
	}
}
