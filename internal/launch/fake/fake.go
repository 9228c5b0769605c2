// Package fake launches services inside this process, reached through pipes, so that a whole run
// takes milliseconds under a fake clock (testing/synctest) and uses nothing of the real machine.
package fake

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/launch"
	"prony.example/record"
)

// Launcher implements launch.Launcher. Set Start and Note before use.
type Launcher struct {
	// Start returns the service of a spec and the delay until it is ready. An error makes a service
	// that ends at once.
	Start func(s launch.Spec) (http.Handler, time.Duration, error)
	// Note receives each event, in order: "launch NAME", "stop NAME" or "move NAME to CORES".
	Note func(string)
	// Processes is the result of Process.PIDs.
	Processes []int
	// Missing is the second result of Process.Limits.
	Missing []record.Limit

	running atomic.Pointer[proc]
}

// Listen implements launch.Launcher.
func (*Launcher) Listen() string { return "127.0.0.1" }

type proc struct {
	*launch.Common
	l   *Launcher
	log []string

	conns   chan net.Conn
	server  *http.Server
	handler atomic.Pointer[http.Handler]
}

// ServeHTTP forwards a request to the current handler.
func (p *proc) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(*p.handler.Load()).ServeHTTP(w, r)
}

// Launch implements launch.Launcher.
func (l *Launcher) Launch(_ context.Context, s launch.Spec) (launch.Process, error) {
	l.Note("launch " + s.Name)
	l.running.Store(nil) // the last process of a system receives the requests
	handler, delay, err := l.Start(s)
	p := &proc{Common: launch.NewCommon(s), l: l}
	p.BeganNs = clock.Mono()
	if err != nil {
		p.log = []string{err.Error()}
		p.Crash("exit status 1")
		return p, nil
	}
	p.conns = make(chan net.Conn)
	p.handler.Store(&handler)
	p.server = &http.Server{Handler: p}
	time.AfterFunc(delay, func() {
		l.running.Store(p)
		go p.server.Serve(listener{p}) //nolint:errcheck // it ends because it is closed, always
	})
	return p, nil
}

// Dial connects to the running service.
func (l *Launcher) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	p := l.running.Load()
	if p == nil {
		return nil, errors.New("connection refused")
	}
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.Exited():
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Replace gives the running service another handler, as if its program had changed.
func (l *Launcher) Replace(h http.Handler) {
	if p := l.running.Load(); p != nil {
		p.handler.Store(&h)
	}
}

// Crash ends the running service as if by itself, and reports whether a service was running.
func (l *Launcher) Crash(how string) bool {
	p := l.running.Load()
	if p != nil {
		p.Crash(how)
	}
	return p != nil
}

// Crash ends the process.
func (p *proc) Crash(how string) {
	p.End(how)
	if p.server != nil {
		p.server.Close() //nolint:errcheck // nothing can fail in a pipe
	}
	p.l.running.CompareAndSwap(p, nil)
}

func (p *proc) Main() int              { return 0 }
func (p *proc) PIDs() []int            { return p.l.Processes }
func (p *proc) Groups() []launch.Group { return nil }
func (p *proc) Log(int) []string       { return p.log }

func (p *proc) Limits() (inForce, missing []record.Limit) {
	return []record.Limit{{Kind: record.LimitCores, By: record.ByAffinity, Cores: p.Spec.Cores}},
		p.l.Missing
}

// Move implements launch.Mover.
func (p *proc) Move(cores []int) error {
	p.l.Note(fmt.Sprintf("move %s to %v", p.Spec.Name, cores))
	p.Spec.Cores = cores
	return nil
}

// Stop implements launch.Process.
func (p *proc) Stop(time.Duration) error {
	p.l.Note("stop " + p.Spec.Name)
	p.Crash("exit status 0")
	return nil
}

// listener passes pipes to a process's http.Server until the process has ended.
type listener struct{ p *proc }

func (l listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.p.conns:
		return c, nil
	case <-l.p.Exited():
		return nil, net.ErrClosed
	}
}

func (listener) Close() error   { return nil }
func (listener) Addr() net.Addr { return &net.UnixAddr{Name: "fake"} }

// Hello returns a service that meets the contract `hello` for a mode, as far as the quick check of
// a trial goes, and that is ready on the usual paths.
func Hello(mode string) http.Handler {
	ready := []string{"/ready", "/readyz", "/health"}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		key, n := "1", 0
		if q.Has("key") {
			key = q.Get("key")
		}
		_, err := fmt.Sscanf(key, "%d", &n)
		status, body := http.StatusOK, ""
		switch {
		case slices.Contains(ready, r.URL.Path):
		case r.URL.Path != "/hello/"+mode || r.Method != http.MethodGet:
			status = http.StatusNotFound
		case q.Has("sleep") && q.Get("sleep") != "0", q.Get("log") == "yes":
			status = http.StatusBadRequest
		case err != nil || n < 1 || n > 50000:
			status = http.StatusNotFound
		default:
			body = "Hello from REST value-" + key
		}
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.WriteHeader(status)
		w.Write([]byte(body)) //nolint:errcheck // a client that has gone needs no answer
	})
}
