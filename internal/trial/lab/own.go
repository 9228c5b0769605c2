package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"prony.example/internal/base/cache"
	"prony.example/internal/base/clock"
	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/internal/suite/adhoc"
	"prony.example/internal/trial"
	"prony.example/load/engine/nethttp"
	"prony.example/record"
)

// Services clones the revisions that sources name, and makes a service of each. ready is the path
// that answers 200 once they serve; with "" or "-", the first connection counts. A startup that is
// longer than the default bound also applies to trials. Builds use the project's cache from now on.
// Without a folder out of the results, it makes the folder for them, which must be writable.
func (l *Lab) Services(ctx context.Context, sources []adhoc.Source, ready, out string,
	startup time.Duration) (Catalog, error) {
	dir := filepath.Join(l.Root, record.Kept)
	builds := slices.ContainsFunc(sources, func(s adhoc.Source) bool { return len(s.Steps) > 0 })
	if builds || out != "" { // otherwise the project's own folder is writable
		cached, err := cache.Project(ctx, l.Root, clock.Wall())
		if err != nil && builds {
			return nil, err
		}
		l.Cache = cached
	}
	for i := range sources {
		note, err := sources[i].Clone(ctx, filepath.Join(l.Cache, "git"))
		if err != nil {
			return nil, err
		}
		if note != "" && !sources[i].Again {
			l.Tell.Say(note)
		}
	}
	if err := adhoc.Differ(sources); err != nil {
		return nil, err
	}
	services, err := adhoc.Services(sources, os.Environ(), strings.TrimPrefix(ready, "-"))
	for _, s := range services {
		s.Run.Startup, s.AsMe = max(startup, trial.ReadyBound), l.AsMe
		if s.Made != nil && s.Made.Note != "" && s.ControlOf == "" {
			l.Tell.Say(s.Made.Note)
		}
	}
	if _, created := os.Stat(dir); err != nil && created != nil {
		return nil, err // a refused command leaves no files
	}
	if failed := record.Keep(dir); out == "" && failed != nil {
		err = errors.Join(err, fmt.Errorf("%w; make the folder writable, or choose another one "+
			"for the results with --out", failed))
	}
	return services, err
}

// hostOf returns the host name for requests to a service; empty: its address.
func hostOf(s *service.Service) string {
	if s.Made == nil {
		return ""
	}
	return s.Made.Host
}

// portHint is the hint for services that start and do not respond.
const portHint = "a service must listen on 127.0.0.1 at the port in $PORT, or at {port} in its " +
	"command; it is ready when the path of ready (--ready), or else the path of the first " +
	"request, returns status 200 within the time of startup (--startup)"

// Meeting describes a check of services before they are measured.
type Meeting struct {
	Of         Catalog
	Startup    time.Duration // maximum startup time of each
	Requests   []suite.Request
	Speaks     suite.Scenario // protocol of the requests; the rest is ignored
	StatusOnly bool           // check only the status of responses
	Ports      Ports          // Meet adds to it; nil: not recorded
	// Connections is the number of connections of the loads, and CPUs the number of cores of a
	// service, for a note on slow services; 0: there is none.
	Connections int
	CPUs        float64
}

// slow reports a request whose response takes so long that a load of all connections waits for more
// than slowBound, if the service computes all this time.
func (m Meeting) slow(request string, answers []adhoc.Answer) string {
	if m.CPUs == 0 || len(answers) == 0 {
		return ""
	}
	alone := slices.MinFunc(answers, func(a, b adhoc.Answer) int {
		return cmp.Compare(a.Duration, b.Duration)
	}).Duration
	all := time.Duration(float64(alone) * float64(m.Connections) / m.CPUs)
	if all <= slowBound {
		return ""
	}
	fit := max(1, int(float64(slowBound)/2/float64(alone)*m.CPUs))
	return fmt.Sprintf("%s takes %v alone, so %d connections wait up to %v for a service that "+
		"computes all this time. If trials fail, use --connections %d --measure 10s", request,
		alone.Round(time.Millisecond), m.Connections, all.Round(100*time.Millisecond), fit)
}

// slowBound is the waiting time of a closed load that is too long for windows of a second.
const slowBound = time.Second

// Meet starts each service once, sends it the requests, and returns what all responses have in
// common, which it also reports. This needs a separate start: the first trial runs before the other
// services start, and must be checked against the responses of all services.
func (l *Lab) Meet(ctx context.Context, m Meeting) ([]adhoc.Held, error) {
	var names []string
	var answers [][][]adhoc.Answer
	filled, err := adhoc.Fill(m.Requests, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	speaks := m.Speaks
	speaks.Requests = filled
	speech := speechOf(speaks)
	see := func(ctx context.Context, t Seen) error {
		s := t.Service
		addr, err := netip.ParseAddrPort(t.Base)
		if err != nil {
			return err
		}
		item, err := adhoc.Ask(ctx, speech(s, addr), t.Base, speaks.To(hostOf(s)).
			Sized(s.Targets[0].Body).Requests)
		names, answers = append(names, t.Name), append(answers, item)
		for i, list := range item {
			if text := m.slow(filled[i].Request, list); text != "" {
				l.Tell.Say(t.Name + ": " + text)
			}
		}
		return err
	}
	if err := l.meetAll(ctx, m, speech, see); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, nil // the run reports why
	}
	retained, err := adhoc.Hold(m.Requests, names, answers, m.StatusOnly, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	for _, h := range retained {
		if h.Request.Given {
			continue
		}
		text := fmt.Sprintf("status %d and every byte of the body", h.Request.Expect.Status)
		if h.Says != "" {
			text = fmt.Sprintf("%s (status %d)", h.Says, h.Request.Expect.Status)
		}
		l.Tell.Say(h.Request.Request + " is checked against " + strings.TrimPrefix(text, "by "))
	}
	return retained, nil
}

// speechOf returns a function that gives the way of requests to a service at an address.
func speechOf(speaks suite.Scenario) func(*service.Service, netip.AddrPort) *nethttp.Config {
	return func(s *service.Service, addr netip.AddrPort) *nethttp.Config {
		return trial.Speech(speaks.To(hostOf(s)), "", addr)
	}
}

// meetAll starts each service once and calls see for it.
func (l *Lab) meetAll(ctx context.Context, m Meeting,
	speech func(*service.Service, netip.AddrPort) *nethttp.Config, see Sight) error {
	for _, launcher := range suite.Launchers {
		catalog := slices.DeleteFunc(slices.Clone(m.Of), func(s *service.Service) bool {
			return cmp.Or(Contained(s), suite.Launchers[0]) != launcher
		})
		visit := Visitor{Lab: l, Of: catalog, Bound: m.Startup, Launcher: launcher,
			Doing: "start", Hint: portHint, Ports: m.Ports,
			Skipped: func(name string, missing []string) {
				l.Tell.Say("service " + name + " is left out: it " + missing[0])
			}, See: see,
			Speak: func(s *service.Service, addr netip.AddrPort) service.Speaker {
				return trial.Speaker(speech(s, addr), hostOf(s), addr)
			}}
		if len(catalog) == 0 {
			continue
		}
		if err := visit.Visit(ctx, nil); err != nil {
			return joinStrays(err)
		}
	}
	return nil
}
