package portguard

import (
	"container/list"
	"context"
	"net"
	"net/http"
)

// connection is the key of a request's connection in its context.
type connection struct{}

// Watch has an HTTP server pass the states of its connections. It sets ConnContext and ConnState.
func (l *Listener) Watch(s *http.Server) {
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connection{}, c)
	}
	s.ConnState = func(c net.Conn, state http.ConnState) {
		switch state {
		case http.StateIdle:
			l.setIdle(c, &l.idle)
		case http.StateActive:
			l.setIdle(c, nil)
		}
	}
}

// setIdle moves the connection of a known client. Fresh connections stay fresh: the first byte of a
// request proves nothing.
func (l *Listener) setIdle(c net.Conn, to *list.List) {
	if c, ok := guarded(c); ok {
		l.mu.Lock()
		if c.known {
			c.move(to)
		}
		l.mu.Unlock()
	}
}

// Admit marks the connection of a valid request.
func Admit(r *http.Request) {
	if c, ok := r.Context().Value(connection{}).(net.Conn); ok {
		AdmitConn(c)
	}
}

// Protect keeps the connection of a request busy, as ProtectConn does.
func Protect(r *http.Request) (release func()) {
	if c, ok := r.Context().Value(connection{}).(net.Conn); ok {
		return ProtectConn(c)
	}
	return func() {}
}

// Protected keeps the connection of a request without a body busy while the request is in work, on
// a port that also answers unknown clients.
func Protected(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == http.NoBody {
			defer Protect(r)()
		}
		next.ServeHTTP(w, r)
	})
}

// Deny counts the connection of a refused request, and has the server close it after the response.
// Call it before the status is written.
func Deny(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "close")
	if c, ok := r.Context().Value(connection{}).(net.Conn); ok {
		DenyConn(c)
	}
}
