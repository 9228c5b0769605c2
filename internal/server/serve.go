// Package server is the lab in a browser: an HTTP API over the runs of a folder, and the pages that
// use it. What it says is made by the packages that make the files: a report is internal/report's,
// a comparison internal/report/compare's; openapi.yaml describes all of it.
//
//	request ─ door ─ token ─ bounds ─ handler ─ shelf, report, comparison, trend ─► JSON, a page
//	                                      └ Lab: suites, catalog, plan, host, a run of its own
//
// Whoever may talk to it may have a service of the catalog built and run. So it listens on
// 127.0.0.1 unless it is told otherwise, which takes a token; it answers pages of its own alone
// (internal/base/hostguard); it changes nothing on GET; it opens files by identifiers, never by a
// path from a request; and all that it takes in, keeps open or makes at once is bounded.
//
// Non-goals: it computes nothing itself, measures nothing, and knows no flag.
package server

import (
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

	"golang.org/x/net/netutil"

	"prony.example/internal/base/hostguard"
	"prony.example/internal/report/runs"
	"prony.example/internal/server/app"
)

// Description is openapi.yaml, which the server gives away as /api/v1/openapi.yaml.
//
//go:embed openapi.yaml
var Description []byte

// Options are what a server is made of.
type Options struct {
	Runs *runs.Shelf
	Lab  Lab // nil: there is no checkout, and runs are read alone
	// Token is asked of everybody; empty: of nobody, which is for 127.0.0.1 alone.
	Token string
	// Version is the program's.
	Version string
	// Ours says whether a process may be a lab of ours: a run's folder can come from anywhere, and
	// the process that it names is sent a signal. Nil: every one may be.
	Ours func(pid int) bool
	// Busy is in what a run says that finds another lab at work.
	Busy string
}

// Server answers. Make it with New.
type Server struct {
	Options
	heavy chan struct{} // who makes a report, a comparison or a history
	built kept          // of what they made
	looks looks         // at the host

	beginning sync.Mutex // one run at a time is begun
	watchers  chan struct{}
	closed    chan struct{} // ends what would go on for ever
	end       sync.Once
}

// Bounds. What a browser of one reader needs is far below them.
const (
	maxBody    = 64 << 10 // of a request, bytes
	maxHeader  = 16 << 10
	maxConns   = 128 // connections at a time
	maxHeavy   = 2   // reports, comparisons and histories that are made at a time
	readBound  = 20 * time.Second
	writeBound = 2 * time.Minute // a report of many records takes seconds
	idleBound  = 2 * time.Minute
)

// New is a server that does not listen yet.
func New(o Options) *Server {
	return &Server{Options: o, heavy: make(chan struct{}, maxHeavy),
		watchers: make(chan struct{}, maxWatchers), closed: make(chan struct{})}
}

// Serve answers whoever comes to a listener, until the context ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s.Handler(), ErrorLog: log.New(io.Discard, "", 0), MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: readBound, ReadTimeout: readBound, WriteTimeout: writeBound,
		IdleTimeout: idleBound,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(netutil.LimitListener(l, maxConns)) }()
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

// lastBound is how long requests may go on once the server is told to end.
const lastBound = 2 * time.Second

// Handler is the whole of it, from the door on.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, handle := range s.routes() {
		mux.Handle(pattern, answer(handle))
	}
	mux.Handle("/api/", answer(func(http.ResponseWriter, *http.Request) error {
		return refuse(http.StatusNotFound, "there is no such part of the API; "+
			"/api/v1/openapi.yaml lists all")
	}))
	mux.Handle("GET /{$}", answer(s.index))
	mux.Handle("GET /{name}", answer(s.asset))
	return hostguard.Guard(headers(s.admit(bounded(mux))))
}

// routes are the API. openapi.yaml describes each, and a test holds the two together.
func (s *Server) routes() map[string]handler {
	const v1, ok, accepted = "/api/v1", http.StatusOK, http.StatusAccepted
	return map[string]handler{
		"GET " + v1 + "/openapi.yaml":           s.describe,
		"GET " + v1 + "/runs":                   made(ok, s.runs),
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

// refusal is an answer that is no success, with what is wrong and what would be right.
type refusal struct {
	status int
	text   string
}

func (e *refusal) Error() string { return e.text }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

// handler answers a request; its error becomes the answer.
type handler = func(http.ResponseWriter, *http.Request) error

// answer turns an error into an answer.
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
		case errors.Is(err, runs.ErrLabels):
			status = http.StatusUnprocessableEntity
		}
		say(w, r, status, err.Error())
	})
}

// made answers with what is made of a request, as JSON.
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

// ignore drops the error of an answer that nobody waits for any more: its head is sent.
func ignore(error) error { return nil }

// appPolicy is the app's own, and no page of another shows it in a frame.
const appPolicy = app.Policy + "; frame-ancestors 'none'"

// reportPolicy is for a report's page, which has a policy of its own by hashes. In its sandbox it
// has no origin, so whatever got into it could not call this server.
const reportPolicy = "sandbox allow-scripts allow-downloads allow-popups; frame-ancestors 'self'"

// headers sets what every answer has.
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

// bounded refuses what changes something and is no JSON, which a form of another's page could send
// without being asked about; and takes in only so much.
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

// read takes in the JSON of a request. What it does not know it refuses: a mistyped limit must not
// be no limit.
func read(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return err
		}
		return refuse(http.StatusBadRequest, "read the request: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return refuse(http.StatusBadRequest, "read the request: there is more than one value")
	}
	return nil
}

// cookie is what a browser keeps of the token.
const cookie = "prony"

// admit asks for the token: as a bearer's (RFC 6750), which programs send, or as the cookie that a
// browser gets when it follows the link with it, which is then no longer in the address.
func (s *Server) admit(next http.Handler) http.Handler {
	if s.Token == "" {
		return next
	}
	want := sha256.Sum256([]byte(s.Token))
	right := func(token string) bool {
		got := sha256.Sum256([]byte(token))
		return subtle.ConstantTimeCompare(got[:], want[:]) == 1
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bearer, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		retained, err := r.Cookie(cookie)
		input := r.URL.Query().Get("token")
		switch {
		case isBearer && right(bearer), !isBearer && err == nil && right(retained.Value):
			next.ServeHTTP(w, r)
		case r.Method == http.MethodGet && r.URL.Path == "/" && input != "" && right(input):
			http.SetCookie(w, &http.Cookie{Name: cookie, Value: input, Path: "/", HttpOnly: true,
				SameSite: http.SameSiteStrictMode})
			http.Redirect(w, r, "/", http.StatusSeeOther)
		default:
			w.Header().Set("WWW-Authenticate", `Bearer realm="prony"`)
			say(w, r, http.StatusUnauthorized, "this server requires the token that prony serve "+
				"printed: open the printed link, or send Authorization: Bearer TOKEN")
		}
	})
}

func (s *Server) describe(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, err := w.Write(Description)
	return ignore(err)
}

// index is the app.
func (s *Server) index(w http.ResponseWriter, _ *http.Request) error {
	return page(w, "index.html")
}

// asset is a file of the app. They are in the program, not on disk.
func (s *Server) asset(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if kinds[path.Ext(name)] == "" || !runs.Identifier(name) {
		return refuse(http.StatusNotFound, "there is no page %.128q", name)
	}
	return page(w, name)
}

// kinds are what the app is made of.
var kinds = map[string]string{".js": "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8"}

func page(w http.ResponseWriter, name string) error {
	b, err := app.Page(name)
	if err != nil {
		return refuse(http.StatusNotFound, "there is no page %.128q", name)
	}
	w.Header().Set("Content-Type", kinds[path.Ext(name)])
	_, err = w.Write(b)
	return ignore(err)
}
