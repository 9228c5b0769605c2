// Package server serves prony in a browser: an HTTP API over the runs of a folder, and the pages
// that use it. Other packages make its documents: internal/report the reports,
// internal/report/compare the comparisons; openapi.yaml describes all of it.
//
//	request ─ door ─ token ─ bounds ─ handler ─ shelf, report, comparison, trend ─► JSON, a page
//	                                      └ Lab: suites, catalog, plan, host, a run of its own
//
// Clients may start builds and runs of services in the catalog. So the server listens on 127.0.0.1
// by default, and other addresses require a token; it accepts requests only from its own pages
// (internal/base/portguard); it changes nothing on GET; it opens files by identifiers, never by a
// path from a request; and it bounds request bodies, connections and concurrent work. Connections
// without a valid request make room for others (internal/base/portguard).
//
// Non-goals: it computes nothing itself, measures nothing, and has no flags.
package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed" // the description
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"mime"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"prony.example/internal/base/portguard"
	"prony.example/internal/base/strictyaml"
	"prony.example/internal/report/runs"
	"prony.example/internal/server/app"
)

// Description is openapi.yaml, which the server offers as /api/v1/openapi.yaml.
//
//go:embed openapi.yaml
var Description []byte

// Options configure a server.
type Options struct {
	Runs *runs.Shelf
	Lab  Lab // nil: no checkout, only existing runs
	// Token is required from every client; empty: none is, which is only for 127.0.0.1.
	Token string
	// Version is the program's version.
	Version string
	// Ours reports whether a process may be the one of prony that writes a run's folder, because a
	// folder can come from anywhere and stopping a run sends a signal to the process that it names.
	// Nil: every process may be.
	Ours func(pid int, dir string) bool
	// Report receives a line if connections were refused, at most once a minute. It may be nil.
	Report func(line string)
	// Connections is the largest number of concurrent connections, from Room; 0: maxConns.
	Connections int
	// Busy is part of the output of a run that cannot start because another run is under way.
	Busy string
}

// Server handles requests. Make it with New.
type Server struct {
	Options
	heavy chan struct{} // limits concurrent reports, comparisons, histories, catalogs and plans
	built kept          // the cache of their results
	looks looks         // the cache of checks of the host

	beginning sync.Mutex // only one run starts at a time
	watchers  chan struct{}
	closed    chan struct{} // ends responses that would never end
	end       sync.Once
}

// Bounds. The browser of one reader needs much less.
const (
	maxBody    = 64 << 10 // of a request, bytes
	maxHeader  = 16 << 10
	maxConns   = 2048 // concurrent connections, of some 20 kB each
	leastConns = 16   // a browser has six
	maxHeavy   = 2    // concurrent reports, comparisons, histories, catalogs and plans
	headBound  = 5 * time.Second
	readBound  = 20 * time.Second
	writeBound = 2 * time.Minute // a report of many records takes seconds
	idleBound  = 2 * time.Minute
)

// Room returns the number of concurrent connections for which the limit on open files suffices, and
// a warning if there could be more. It fails if a browser could not work with them.
func Room() (connections int, warning string, err error) {
	return portguard.Fit(leastConns, maxConns, 1)
}

// New returns a server that does not listen yet.
func New(o Options) *Server {
	o.Connections = cmp.Or(o.Connections, maxConns)
	return &Server{Options: o, heavy: make(chan struct{}, maxHeavy),
		looks:    looks{turn: make(chan struct{}, 1)},
		watchers: make(chan struct{}, maxWatchers), closed: make(chan struct{})}
}

// Serve handles the requests to a listener, until the context ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s.Handler(), ErrorLog: log.New(io.Discard, "", 0), MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: headBound, ReadTimeout: readBound, WriteTimeout: writeBound,
		IdleTimeout: idleBound,
	}
	guard := portguard.New(l, portguard.Options{Most: s.Connections, Report: s.reportRefused})
	guard.Watch(server)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(guard) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	s.end.Do(func() { close(s.closed) })
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastBound)
	defer cancel()
	if err := server.Shutdown(bounded); err != nil {
		return errors.Join(server.Close(), <-ended)
	}
	return nil
}

// reportRefused reports refused connections.
func (s *Server) reportRefused(n portguard.Refused) {
	if s.Report == nil {
		return
	}
	if s.Token == "" {
		s.Report(fmt.Sprintf("closed %s without a complete request, because %d were open",
			n.Connections(), s.Connections))
		return
	}
	s.Report("refused " + n.Connections() + " without the token")
}

// lastBound is the time that requests have after the server begins to end.
const lastBound = 2 * time.Second

// Handler returns the complete handler, with all checks.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, handle := range s.routes() {
		mux.Handle(pattern, answer(handle))
	}
	mux.Handle("/api/", answer(func(http.ResponseWriter, *http.Request) error {
		return refuse(http.StatusNotFound, "the API has no such path; /api/v1/openapi.yaml lists "+
			"all paths")
	}))
	mux.Handle("GET /{$}", answer(s.index))
	mux.Handle("GET /{name}", answer(s.asset))
	mux.Handle("/", answer(func(_ http.ResponseWriter, r *http.Request) error {
		return refuse(http.StatusNotFound, "the page %.128q does not exist", r.URL.Path)
	}))
	return portguard.Guard(headers(s.admit(bounded(mux))))
}

// routes returns the API. openapi.yaml describes each route, and a test compares the two.
func (s *Server) routes() map[string]handler {
	const v1, ok, accepted = "/api/v1", http.StatusOK, http.StatusAccepted
	return map[string]handler{
		"GET " + v1 + "/openapi.yaml":           s.describe,
		"GET " + v1 + "/runs":                   made(ok, s.runs),
		"GET " + v1 + "/choices":                made(ok, s.choices),
		"GET " + v1 + "/runs/{id}":              made(ok, s.run),
		"GET " + v1 + "/runs/{id}/report":       s.report,
		"GET " + v1 + "/runs/{id}/page":         s.page,
		"GET " + v1 + "/runs/{id}/log":          s.labLog,
		"GET " + v1 + "/runs/{id}/trials":       s.trials,
		"GET " + v1 + "/runs/{id}/logs/{trial}": s.serviceLog,
		"GET " + v1 + "/runs/{id}/events":       s.events,
		"PUT " + v1 + "/runs/{id}/labels":       made(ok, s.label),
		"POST " + v1 + "/runs/{id}/stop":        made(accepted, s.stop),
		"DELETE " + v1 + "/runs/{id}":           s.remove,
		"POST " + v1 + "/plan":                  s.ofLab(ok, s.plan),
		"POST " + v1 + "/check":                 s.ofLab(ok, s.check),
		"POST " + v1 + "/runs":                  s.ofLab(accepted, s.begin),
		"GET " + v1 + "/compare":                s.compare,
		"GET " + v1 + "/compare/page":           s.comparePage,
		"GET " + v1 + "/trend":                  s.trend,
		"GET " + v1 + "/suites":                 s.ofLab(ok, s.suites),
		"GET " + v1 + "/suites/{name}":          s.ofLab(ok, s.suite),
		"GET " + v1 + "/catalog":                s.ofLab(ok, s.catalog),
		"GET " + v1 + "/host":                   s.ofLab(ok, s.host),
	}
}

// refusal is an error response with the problem and its solution.
type refusal struct {
	status int
	text   string
}

func (e *refusal) Error() string { return e.text }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

// handler handles a request; its error becomes the response.
type handler = func(http.ResponseWriter, *http.Request) error

// answer turns an error into a response.
func answer(handle handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := handle(w, r)
		if err == nil || r.Context().Err() != nil {
			return
		}
		status, tooLarge := http.StatusInternalServerError, (*http.MaxBytesError)(nil)
		var refused *refusal
		switch {
		case errors.As(err, &refused):
			status = refused.status
		case errors.As(err, &tooLarge):
			status = http.StatusRequestEntityTooLarge
		case errors.Is(err, runs.ErrNone), errors.Is(err, fs.ErrNotExist):
			status = http.StatusNotFound
		case errors.Is(err, runs.ErrUnderWay):
			status = http.StatusConflict
		case errors.Is(err, runs.ErrLabels), errors.Is(err, runs.ErrDamaged):
			status = http.StatusUnprocessableEntity
		}
		say(w, r, status, err.Error())
	})
}

// made responds with the result of a function as JSON.
func made(status int, value func(*http.Request) (any, error)) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		v, err := value(r)
		if err != nil {
			return err
		}
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, err = w.Write(append(b, '\n'))
		return ignore(err)
	}
}

// ignore drops an error after the head of a response was sent.
func ignore(error) error { return nil }

// appPolicy is the app's policy, which also keeps other sites from showing it in a frame.
const appPolicy = app.Policy + "; frame-ancestors 'none'"

// reportPolicy is for a report's page, which has a policy of its own by hashes. In its sandbox it
// has no origin, so injected code could not call this server.
const reportPolicy = "sandbox allow-scripts allow-downloads allow-popups; frame-ancestors 'self'"

// headers sets the headers of every response.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", appPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-cache")
		next.ServeHTTP(w, r)
	})
}

// bounded refuses changing requests without JSON, which a form on another site could send without a
// preflight request, and bounds the size of requests.
func bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
			if err != nil || kind != "application/json" {
				say(w, r, http.StatusUnsupportedMediaType, "requests that change data must have "+
					"the type application/json")
				return
			}
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}

// read parses the JSON of a request. It refuses unknown fields and numbers that are not exact,
// because a mistyped limit must not mean no limit.
func read(r *http.Request, into any) error {
	if err := strictyaml.JSON(r.Body, into); err != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return err
		}
		return refuse(http.StatusBadRequest, "read the request: %v", err)
	}
	return nil
}

// cookie returns the name of the cookie with the token. Browsers send the cookies of a host to all
// its ports, and each can have a server.
func cookie(r *http.Request) string {
	_, port, _ := net.SplitHostPort(r.Host) // none is the default port
	return "prony" + port
}

// admit requires the token: as a bearer token (RFC 6750), which programs send, or as the cookie
// that a browser gets when it follows the link with the token, which is then removed from the
// address.
func (s *Server) admit(next http.Handler) http.Handler {
	next = admitted(next)
	if s.Token == "" {
		return next
	}
	want := sha256.Sum256([]byte(s.Token))
	right := func(token string) bool {
		got := sha256.Sum256([]byte(token))
		return subtle.ConstantTimeCompare(got[:], want[:]) == 1
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, bearer, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		isBearer := strings.EqualFold(scheme, "bearer") // RFC 9110, section 11.1
		retained, err := r.Cookie(cookie(r))
		input := r.URL.Query().Get("token")
		switch {
		case r.Method == http.MethodGet && r.URL.Path == "/" && input != "" && right(input):
			portguard.Admit(r)
			http.SetCookie(w, &http.Cookie{Name: cookie(r), Value: input, Path: "/",
				HttpOnly: true, SameSite: http.SameSiteStrictMode})
			http.Redirect(w, r, "/", http.StatusSeeOther)
		case isBearer && right(bearer), !isBearer && err == nil && right(retained.Value):
			next.ServeHTTP(w, r)
		default:
			portguard.Deny(w, r)
			w.Header().Set("WWW-Authenticate", `Bearer realm="prony"`)
			say(w, r, http.StatusUnauthorized, "this server requires the token that prony serve "+
				"printed: open the printed link, or send Authorization: Bearer TOKEN")
		}
	})
}

// admitted marks the connection of a valid request, so that it makes no room for others.
func admitted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		portguard.Admit(r)
		next.ServeHTTP(w, r)
	})
}

func (s *Server) describe(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, err := w.Write(Description)
	return ignore(err)
}

// index responds with the app.
func (s *Server) index(w http.ResponseWriter, _ *http.Request) error {
	return page(w, "index.html")
}

// asset responds with a file of the app. The files are part of the program.
func (s *Server) asset(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if kinds[path.Ext(name)] == "" || !runs.Identifier(name) {
		return refuse(http.StatusNotFound, "the page %.128q does not exist", name)
	}
	return page(w, name)
}

// kinds has the types of the app's files.
var kinds = map[string]string{".js": "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8"}

func page(w http.ResponseWriter, name string) error {
	b, err := app.Page(name)
	if err != nil {
		return refuse(http.StatusNotFound, "the page %.128q does not exist", name)
	}
	w.Header().Set("Content-Type", kinds[path.Ext(name)])
	_, err = w.Write(b)
	return ignore(err)
}
