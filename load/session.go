package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/load/engine/nethttp"
	"prony.example/load/pace"
	"prony.example/load/template"
)

// State of users: variables from the setup before the load, a row of data, and a cookie jar. A user
// is a connection. Scenarios without any of these pay only a branch per request.

// Session is the part of a scenario that differs between users.
type Session struct {
	// Setup is sent before the connections are opened and is excluded from results. Its captured
	// values are variables of all requests.
	Setup   []Request
	PerUser bool // each connection has its own setup; otherwise all share one

	// Cookies makes each user keep the cookies that responses set (RFC 6265). All go to the load's
	// only host, whatever their Domain and Secure attributes. A flow begins with the cookies of the
	// setup.
	Cookies bool

	Columns []string   // names of variables; each row of Rows has a value for each
	Rows    [][][]byte // of data; turn k uses row k mod the number of rows
	Drawn   bool       // draw rows by seed instead
	// With PerUser, user i uses row i mod the number of rows for the whole load.
}

// user is the initial state of a connection.
type user struct {
	vars [][]byte
	jar  jar
}

const (
	setupAtOnce = 16 // concurrent setups
	cookiesMax  = 50 // per user, the minimum that RFC 6265 (6.1) requires
	cookieMax   = 4096
	rowSalt     = 0xbf58476d1ce4e5b9
)

// sessions compiles the state of users. Its variables come before those of the requests.
func (p *plan) sessions(s *Scenario, host string) error {
	p.cookies, p.rows, p.drawn = s.Cookies, s.Rows, s.Drawn
	p.perUser = s.PerUser && len(s.Setup) > 0
	for _, name := range s.Columns {
		p.variable(name)
	}
	for i, row := range s.Rows {
		if len(row) != len(s.Columns) {
			return fmt.Errorf("row %d has %d values, and there are %d columns", i+1, len(row),
				len(s.Columns))
		}
	}
	if len(s.Columns) > 0 && len(s.Rows) == 0 {
		return errors.New("the data has no row")
	}
	p.fixed = len(p.vars)
	for _, r := range s.Setup {
		if err := p.add(r, host, true); err != nil {
			return fmt.Errorf("setup: %s %s: %w", r.Method, r.Path, err)
		}
	}
	p.fixed = len(p.vars)
	return nil
}

// fits rejects values of the data that are invalid in a path or a header field.
func (p *plan) fits(columns []string) error {
	for n, row := range p.rows {
		for i, v := range row {
			switch {
			case p.inPath[i] && !isWord(v):
				return fmt.Errorf("row %d: the value of %s has a blank or a control character, "+
					"which a path cannot; write it as %%20 or the like", n+1, columns[i])
			case p.inHead[i] && !isLine(v):
				return fmt.Errorf("row %d: the value of %s has a line's end or another control "+
					"character, which a header field cannot", n+1, columns[i])
			}
		}
	}
	return nil
}

// prepare sends the setup and fills the initial state of users.
func (p *plan) prepare(ctx context.Context, s *Spec) error {
	n := 1
	if p.perUser {
		n = s.Connections
	}
	p.users = make([]user, n)
	for i := range p.users {
		p.users[i].vars = make([][]byte, len(p.vars))
	}
	if len(p.setup) == 0 {
		return nil
	}
	if s.Describe.Protocol != "" {
		return fmt.Errorf("setup requests work only over HTTP/1.1 without TLS, not over %s",
			s.Describe.Protocol)
	}
	slots := make(chan struct{}, setupAtOnce)
	failed := make([]error, n)
	var all sync.WaitGroup
	for i := range p.users {
		if p.perUser && !s.Part.has(i) {
			continue // another generator sends it
		}
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if ctx.Err() == nil {
				failed[i] = p.arrange(ctx, s, i)
			}
		})
	}
	all.Wait()
	for i, err := range failed {
		if err != nil {
			return fmt.Errorf("setup of user %d: %w", i, err)
		}
	}
	return ctx.Err()
}

// arrange sends the steps of the setup for a user, in order.
func (p *plan) arrange(ctx context.Context, s *Spec, i int) error {
	u := &p.users[i]
	v := &template.Values{Seed: p.seed, K: uint64(i), Key: p.keyLo, Vars: u.vars}
	if p.rows != nil {
		p.row(u.vars, uint64(i))
	}
	for n := range p.setup {
		r := &p.setup[n]
		if err := p.take(ctx, s, r, u, v); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}

// take sends a step of the setup over a connection of its own, which the server cannot have given
// up.
func (p *plan) take(ctx context.Context, s *Spec, r *route, u *user, v *template.Values) error {
	conn, err := (&net.Dialer{Timeout: s.Timeout}).DialContext(ctx, "tcp", s.Address.String())
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the response was read
	var field []byte
	if p.cookies {
		field = u.jar.field(nil, r.path.Append(nil, v), clock.Wall())
	}
	if err := conn.SetDeadline(clock.Wall().Add(s.Timeout)); err != nil {
		return err
	}
	if _, err := conn.Write(r.render(nil, nil, field, v)); err != nil {
		return err
	}
	return p.answered(r, bufio.NewReader(conn), u, v)
}

// answered reads the response to a step of the setup and stores its captured values.
func (p *plan) answered(r *route, in *bufio.Reader, u *user, v *template.Values) error {
	method := http.MethodGet
	if r.headOnly {
		method = http.MethodHead
	}
	res, err := nethttp.ReadResponse(in, &http.Request{Method: method})
	if err != nil {
		return err
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, keepMax+1))
	if err == nil {
		err = res.Body.Close()
	}
	if err != nil {
		return err
	}
	if res.StatusCode != r.status {
		return fmt.Errorf("status %d, want %d", res.StatusCode, r.status)
	}
	if len(body) > keepMax {
		return errors.New("the body is larger than the 1 MiB that can be looked into")
	}
	head := bytes.NewBufferString("HTTP/1.1 200 OK\r\n")
	if err := res.Header.Write(head); err != nil {
		return err
	}
	head.WriteString("\r\n")
	if p.cookies {
		u.jar.take(head.Bytes(), r.path.Append(nil, v), clock.Wall())
	}
	for k := range r.checks {
		if !r.checks[k].Holds(head.Bytes(), body, v) {
			return errors.New("check failed: " + r.checks[k].String() +
				r.checks[k].Of.Coded(head.Bytes()))
		}
	}
	for _, e := range r.extract {
		matches, ok := e.from.Find(head.Bytes(), body)
		if why := p.misfit(e.into, matches, ok); why != "" {
			return errors.New(why + e.from.Coded(head.Bytes()))
		}
		u.vars[e.into] = slices.Clone(matches)
	}
	return nil
}

// misfit returns why a value is invalid for a variable; empty: it is valid.
func (p *plan) misfit(into int, v []byte, ok bool) string {
	switch {
	case !ok:
		return "no value for variable " + p.vars[into]
	case p.inPath[into] && !isWord(v) || p.inHead[into] && !isLine(v):
		return "the value for variable " + p.vars[into] + " would break the request's head"
	}
	return ""
}

// row copies the values of turn k, or of user k, into variables.
func (p *plan) row(vars [][]byte, k uint64) {
	n := uint64(len(p.rows))
	offset := k % n
	if p.drawn {
		offset = pace.Below(p.seed^rowSalt, k, n)
	}
	copy(vars, p.rows[offset])
}

// who gives connection i the initial state of its user.
func (w *worker) who(c *conn, i int) {
	u := &w.plan.users[w.number(i)%len(w.plan.users)]
	copy(c.vars, u.vars)
	c.base = u.jar
	c.jar = slices.Clone(u.jar)
}

// another prepares the user's state for a new turn.
func (w *worker) another(c *conn) {
	if w.plan.rows != nil && !w.plan.perUser {
		w.plan.row(c.vars, c.k)
	}
	if w.plan.cookies && w.plan.flow {
		c.jar = append(c.jar[:0], c.base...)
	}
}

// jar holds the cookies of a user, oldest first.
type jar []cookie

type cookie struct {
	name, value, path string
	end               time.Time // when it expires; zero: never
}

// field appends the Cookie header field for a path, if any cookie matches. Longer paths come first
// (RFC 6265, 5.4): services take the first of two cookies with one name.
func (j jar) field(dst, path []byte, now time.Time) []byte {
	path, _, _ = bytes.Cut(path, []byte("?"))
	began := false
	for length, shorter := len(path)+1, 0; length > 0; length, shorter = shorter, 0 {
		for i := range j {
			c := &j[i]
			n := len(c.path)
			if n > length || !under(path, c.path) || !c.end.IsZero() && !now.Before(c.end) {
				continue
			} else if n < length {
				shorter = max(shorter, n)
				continue
			}
			if began {
				dst = append(dst, "; "...)
			} else {
				dst = append(dst, "Cookie: "...)
				began = true
			}
			dst = append(append(append(dst, c.name...), '='), c.value...)
		}
	}
	if began {
		dst = append(dst, "\r\n"...)
	}
	return dst
}

// under reports whether a path matches a cookie's path (RFC 6265, 5.1.4).
func under(path []byte, subject string) bool {
	return len(path) >= len(subject) && string(path[:len(subject)]) == subject &&
		(len(path) == len(subject) || strings.HasSuffix(subject, "/") || path[len(subject)] == '/')
}

// take stores and deletes the cookies that a response to a request for the path sets.
func (j *jar) take(head, path []byte, now time.Time) {
	const name = "set-cookie:"
	for len(head) > 0 {
		var line []byte
		line, head, _ = bytes.Cut(head, []byte("\n"))
		if len(line) < len(name) || !strings.EqualFold(string(line[:len(name)]), name) ||
			len(line) > cookieMax {
			continue
		}
		set, err := http.ParseSetCookie(strings.TrimSpace(string(line[len(name):])))
		if err != nil {
			continue // browsers also ignore it
		}
		c := cookie{set.Name, set.Value, set.Path, set.Expires}
		if set.Quoted {
			c.value = `"` + set.Value + `"`
		}
		if !strings.HasPrefix(c.path, "/") {
			c.path = folder(path)
		}
		i := slices.IndexFunc(*j, func(old cookie) bool {
			return old.name == c.name && old.path == c.path
		})
		if set.MaxAge > 0 {
			c.end = now.Add(time.Duration(min(set.MaxAge, 1<<31)) * time.Second)
		}
		over := set.MaxAge < 0 || !c.end.IsZero() && c.end.Before(now)
		switch {
		case i >= 0 && over:
			*j = slices.Delete(*j, i, i+1)
		case i >= 0:
			(*j)[i] = c // as old as before
		case !over:
			if len(*j) == cookiesMax {
				*j = slices.Delete(*j, 0, 1)
			}
			*j = append(*j, c)
		}
	}
}

// folder returns the path of a cookie without a Path attribute (RFC 6265, 5.1.4).
func folder(path []byte) string {
	path, _, _ = bytes.Cut(path, []byte("?"))
	if i := bytes.LastIndexByte(path, '/'); i > 0 {
		return string(path[:i])
	}
	return "/"
}

// jarred returns the additional header fields of a request: the trace fields and the user's
// cookies.
func (w *worker) jarred(c *conn, field []byte) []byte {
	w.room = c.route.path.Append(w.room[:0], &w.values)
	w.jars = c.jar.field(append(w.jars[:0], field...), w.room, clock.Wall())
	if len(w.jars) == 0 {
		return nil
	}
	return w.jars
}
