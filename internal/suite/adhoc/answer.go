package adhoc

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"prony.example/internal/base/address"
	"prony.example/internal/base/clock"
	"prony.example/internal/base/units"
	"prony.example/internal/suite"
	"prony.example/load/engine/nethttp"
	"prony.example/load/template"
)

const (
	// askTimes is how often each service is sent the requests before it is measured. Responses of
	// one service that differ do so without any difference between services.
	askTimes = 3
	// askSpan is the time from the first to the last request if a response has numbers: a count of
	// seconds changes in it.
	askSpan = 1100 * time.Millisecond
	// askBound is the timeout of one response.
	askBound = 10 * time.Second
	// maxBody is the maximum size of a response that is compared byte for byte.
	maxBody = 4 << 20
	// maxFields is the maximum number of fields that are checked in a response that varies: each is
	// looked up in every response.
	maxFields = 16
	// maxDepth is the maximum depth of fields in a response. No real response is deeper, and a
	// response of only brackets would take memory by the square of its length.
	maxDepth = 64
)

// Fill returns the requests as they are sent, with variables of the environment filled in.
func Fill(requests []suite.Request, environment func(string) (string, bool)) ([]suite.Request,
	error) {
	out := slices.Clone(requests)
	for i, r := range requests {
		var errs []error
		fill := func(in string) string {
			s, err := template.Render(in, nil, &template.Values{}, environment)
			errs = append(errs, err)
			return s
		}
		out[i].Request, out[i].Body = fill(r.Request), fill(r.Body)
		out[i].Headers = map[string]suite.Text{}
		for name, value := range r.Headers {
			out[i].Headers[name] = suite.Text(fill(string(value)))
		}
		if err := errors.Join(errs...); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Request, err)
		}
	}
	return out, nil
}

// Answer is the response of a service.
type Answer struct {
	Status int
	Body   []byte
	// Duration is the time from the request to the end of the body.
	Duration time.Duration
	// Values of the lab that the response may quote: the Host field, the service's port, and the
	// port of the client's connection; empty: unknown.
	Host, Port, Source string
}

// quoted returns a part of the response, with the lab's values that it may quote.
func (a *Answer) quoted(in string) quoted { return quoted{in, a.Host, a.Port, a.Source} }

// same returns the text that all bodies equal, apart from values of the lab.
func same(answers []Answer, positions given) (string, bool) {
	pieces := make([]quoted, len(answers))
	for i := range answers {
		pieces[i] = answers[i].quoted(string(answers[i].Body))
	}
	return joint(pieces, positions)
}

// Ask sends a service its requests a few times and returns for each request its responses in order.
// The requests are filled, and have the same header fields as under load, because a service may
// quote them. config is the way of the requests; nil: HTTP/1.1 over TCP.
func Ask(ctx context.Context, config *nethttp.Config, base string, requests []suite.Request) (
	[][]Answer, error) {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	to := nethttp.Config{Protocol: nethttp.H1, Network: "tcp", Address: base, Host: base}
	if config != nil {
		to = *config
	}
	source := ""
	to.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			_, source, _ = net.SplitHostPort(conn.LocalAddr().String())
		}
		return conn, err
	}
	client := http.Client{Timeout: askBound, CheckRedirect: stay,
		Transport: nethttp.Transport{Config: to}}
	out := make([][]Answer, len(requests))
	first := clock.Mono()
	for round := range askTimes {
		if round == askTimes-1 && slices.ContainsFunc(out, counts) {
			select {
			case <-time.After(time.Duration(first-clock.Mono()) + askSpan):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		for i, r := range requests {
			began := clock.Mono()
			a, err := ask(ctx, &client, base, r)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.Request, err)
			}
			a.Source, a.Duration = source, time.Duration(clock.Mono()-began)
			out[i] = append(out[i], a)
		}
	}
	return out, nil
}

// counts reports whether responses that are equal so far may have a number or a time that changes
// in the course of seconds, such as an uptime.
func counts(answers []Answer) bool {
	a := answers[0].Body
	return bytes.ContainsAny(a, "0123456789") && !slices.ContainsFunc(answers, func(b Answer) bool {
		return !bytes.Equal(a, b.Body)
	})
}

func ask(ctx context.Context, client *http.Client, base string, r suite.Request) (Answer, error) {
	method, path := r.Line("")
	q, err := http.NewRequestWithContext(ctx, method, "http://"+address.WithoutZone(base)+path,
		strings.NewReader(r.Content()))
	if err != nil {
		return Answer{}, err
	}
	for name, value := range r.Headers {
		q.Header[name] = []string{string(value)} // as written, also under load
		if strings.EqualFold(name, "host") {
			q.Host = string(value)
		}
	}
	if r.Content() != "" && q.Header.Get("Content-Type") == "" {
		q.Header.Set("Content-Type", cmp.Or(r.Type, "text/plain"))
	}
	res, err := client.Do(q)
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	_, port, _ := net.SplitHostPort(base)
	return Answer{Status: res.StatusCode, Body: body, Host: q.Host, Port: port}, err
}

// Held is a request with the expectation for every response.
type Held struct {
	Request suite.Request
	Says    string // in words, if it is less than every byte; otherwise empty
}

// Hold returns what all responses to each request have in common; byTarget[service][request] are
// the responses of each. If services respond differently, the error describes how. With statusOnly,
// bodies are ignored. A response is not expected byte for byte if it contains a value that the
// request took from the environment.
func Hold(requests []suite.Request, names []string, byTarget [][][]Answer, statusOnly bool,
	environment func(string) (string, bool)) ([]Held, error) {
	var out []Held
	var errs []error
	for i, r := range requests {
		item := make([][]Answer, len(byTarget))
		for k := range byTarget {
			item[k] = byTarget[k][i]
		}
		h, err := hold(r, names, item, statusOnly, environment)
		if err != nil {
			err = fmt.Errorf("%s: %w", r.Request, err)
		}
		out, errs = append(out, h), append(errs, err)
	}
	return out, errors.Join(errs...)
}

// apart is the hint for services that respond differently.
const apart = "responses differ, so the services are not compared. Fix one service, or compare " +
	"only the status: use --ignore-body, or expect: {status: 200} for a request in prony.yaml"

// hold returns what the responses to one request have in common.
func hold(r suite.Request, names []string, byTarget [][]Answer, statusOnly bool,
	environment func(string) (string, bool)) (Held, error) {
	hide := hider(r, environment)
	if r.Given {
		err := keeps(r, names, byTarget)
		if err != nil {
			err = errors.New(string(hide([]byte(err.Error()))))
		}
		return Held{r, "by the expectations in the file"}, err
	}
	first := byTarget[0][0]
	all := slices.Concat(byTarget...)
	for k, answers := range byTarget {
		for _, a := range answers {
			if a.Status != first.Status {
				return Held{}, fmt.Errorf("%s responds with status %d, but %s responds with "+
					"status %d", names[0],
					first.Status, names[k], a.Status)
			}
		}
	}
	if first.Status >= http.StatusInternalServerError {
		return Held{}, fmt.Errorf("%s responds with status %d: %s", names[0], first.Status,
			excerpt(hide(first.Body), 0))
	}
	r.Expect.Status = first.Status
	if words := byStatus(r, statusOnly); words != "" {
		return Held{r, words}, nil
	}
	shown := make([][]Answer, len(byTarget)) // errors quote them
	for k, answers := range byTarget {
		shown[k] = slices.Clone(answers)
		for i := range answers {
			shown[k][i].Body = hide(answers[i].Body)
		}
	}
	if err := differ(names, shown); err != nil {
		return Held{}, err
	}
	why, positions := "the bytes of the body vary", given{}
	if name := tells(r, all, environment); name != "" { // expectations are stored in every record
		why = "the body contains the value of ${" + name + "}"
	} else if body, ok := same(all, positions); ok && len(first.Body) <= maxBody {
		r.Expect.Body = &body
		if len(positions) > 0 {
			return Held{r, "by every byte of the body, except for values that Prony sets and the " +
				"body repeats: " + positions.String()}, nil
		}
		return Held{r, ""}, nil
	} else if fields := alike(all); len(fields) > 0 {
		for _, path := range slices.Sorted(maps.Keys(fields)) {
			value := suite.Text(fields[path])
			r.Checks = append(r.Checks, suite.Check{Place: suite.Place{JSON: path}, Is: &value})
		}
		r.Checks = r.Checks[:min(len(r.Checks), maxFields)]
		return Held{r, fmt.Sprintf("by %s with constant values; these parts vary: %s",
			units.Plural(len(r.Checks), "field"), vary(fields, all))}, nil
	}
	size := int64(len(first.Body))
	if size > maxBody || slices.ContainsFunc(all, func(a Answer) bool {
		return int64(len(a.Body)) != size
	}) {
		return Held{r, "by the status alone, because bodies vary or are longer than " +
			units.Bytes(maxBody)}, nil
	}
	r.Expect.Size = &size
	return Held{r, fmt.Sprintf("by status and length (%d bytes), because %s", size, why)}, nil
}

// byStatus returns why only the status of a request is checked, in words; empty: also the body.
func byStatus(r suite.Request, statusOnly bool) string {
	_, _, constant := r.Fixed()
	switch {
	case statusOnly || strings.HasPrefix(r.Request, http.MethodHead+" "):
		return "by the status alone"
	case !constant: // all questions have the same values
		return "by the status alone, because its placeholders have other values in each request"
	}
	return ""
}

// tells returns the first variable of the environment in a request whose value is in a response;
// empty: there is none.
func tells(r suite.Request, answers []Answer, environment func(string) (string, bool)) string {
	_, names, _ := r.Fixed()
	for _, name := range names {
		value, _ := environment(name)
		if value != "" && slices.ContainsFunc(answers, func(a Answer) bool {
			return bytes.Contains(a.Body, []byte(value))
		}) {
			return name
		}
	}
	return ""
}

// hider returns a function that writes variables of the environment in a request by their names
// again, because their values may be secret.
func hider(r suite.Request, environment func(string) (string, bool)) func([]byte) []byte {
	_, names, _ := r.Fixed()
	return func(text []byte) []byte {
		for _, name := range names {
			const short = 4 // bytes: no secret, but perhaps part of numbers
			if value, _ := environment(name); len(value) > short {
				text = bytes.ReplaceAll(text, []byte(value), []byte("${"+name+"}"))
			}
		}
		return text
	}
}

// keeps returns an error for services that do not respond as the file expects: by the status, and
// by a body that is given byte for byte. All else is checked under load.
func keeps(r suite.Request, names []string, byTarget [][]Answer) error {
	for k, answers := range byTarget {
		for _, a := range answers {
			if a.Status != r.Expect.Status {
				return fmt.Errorf("%s responds with status %d, but status %d is expected: "+
					"%s", names[k],
					a.Status, r.Expect.Status, excerpt(a.Body, 0))
			}
			if want := r.Expect.Body; want != nil {
				if body, err := template.Parse(*want, nil); err == nil {
					body = body.At(a.Host, a.Port)
					expected, fixed := body.Fixed()
					like := body.Pattern()
					if fixed && !bytes.Equal(expected, a.Body) || like != nil && !like.Is(a.Body) {
						return fmt.Errorf("%s responds with body %s, but body %s is "+
							"expected", names[k],
							excerpt(a.Body, 0), excerpt([]byte(*want), 0))
					}
				}
			}
		}
	}
	return nil
}

// differ returns an error for services that each respond consistently, with the same body or field
// values, but differently from each other.
func differ(names []string, answers [][]Answer) error {
	for k := 1; k < len(answers); k++ {
		a, b := answers[0], answers[k]
		_, still := same(a, given{})
		_, stays := same(b, given{})
		if _, ok := same(slices.Concat(a, b), given{}); still && stays && !ok {
			from := begins(a[0], b[0])
			return fmt.Errorf("%s responds with body %s, but %s responds with body %s; "+
				"%s", names[0], excerpt(a[0].Body, from),
				names[k], excerpt(b[0].Body, from), apart)
		}
		here, theirs, union := alike(a), alike(b), alike(slices.Concat(a, b))
		for _, path := range slices.Sorted(maps.Keys(here)) {
			_, ok := theirs[path]
			if _, single := union[path]; ok && !single {
				return fmt.Errorf("%s has the value %q in field %s, but %s has the value %q; "+
					"%s", names[0], leaves(a[0].Body)[path],
					path, names[k], leaves(b[0].Body)[path], apart)
			}
		}
		if path := lacks(a, b); path != "" {
			return fmt.Errorf("the response of %s has no field %s, but the response of %s has "+
				"this field; %s", names[k], path, names[0], apart)
		}
		if path := lacks(b, a); path != "" {
			return fmt.Errorf("the response of %s has no field %s, but the response of %s has "+
				"this field; %s", names[0], path, names[k], apart)
		}
	}
	return nil
}

// lacks returns a field that all responses of one service have and no response of another; empty:
// there is none.
func lacks(answers, second []Answer) string {
	fields := leaves(answers[0].Body)
	for _, a := range answers[1:] {
		next := leaves(a.Body)
		maps.DeleteFunc(fields, func(path, _ string) bool { _, ok := next[path]; return !ok })
	}
	for _, a := range second {
		next := leaves(a.Body)
		maps.DeleteFunc(fields, func(path, _ string) bool { _, ok := next[path]; return ok })
	}
	for _, path := range slices.Sorted(maps.Keys(fields)) {
		return path
	}
	return ""
}

// begins returns where two bodies begin to differ, apart from values of the lab.
func begins(a, b Answer) int {
	pieces := []quoted{a.quoted(string(a.Body)), b.quoted(string(b.Body))}
	positions := make([]int, len(pieces))
	walk(pieces, positions, func(string, byte) {})
	return positions[0]
}

// excerpt returns the beginning of a body, quoted, or the part around a later position.
func excerpt(body []byte, pos int) string {
	const most, before = 60, 20
	from := 0
	if pos > most-before {
		from = min(pos-before, len(body))
	}
	mark := map[bool]string{true: "…"}
	if tail := body[from:]; len(tail) > most || from > 0 {
		return fmt.Sprintf("%s%q%s (%d bytes)", mark[from > 0], tail[:min(most, len(tail))],
			mark[len(tail) > most], len(body))
	}
	return fmt.Sprintf("%q", body)
}

// alike returns the fields that all JSON responses have with the same value, apart from values of
// the lab. The values are templates.
func alike(answers []Answer) map[string]string {
	out, positions := map[string]string{}, given{}
	all := make([]map[string]string, len(answers))
	for i, a := range answers {
		all[i] = leaves(a.Body)
	}
	pieces := make([]quoted, len(answers))
	for path := range all[0] {
		every := true
		for i := range answers {
			value, ok := all[i][path]
			pieces[i], every = answers[i].quoted(value), every && ok
		}
		if value, ok := joint(pieces, positions); every && ok {
			out[path] = value
		}
	}
	return out
}

// vary lists the fields that are not the same in all responses.
func vary(same map[string]string, answers []Answer) string {
	var out []string
	for path := range leaves(answers[0].Body) {
		if _, ok := same[path]; !ok {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	const most = 5
	if len(out) > most {
		out = append(out[:most], fmt.Sprintf("%d more", len(out)-most))
	}
	return strings.Join(out, ", ")
}

// leaves returns the values of a JSON document by their paths in gjson's syntax, which has none for
// a field without a name. Values are those that a check finds under load (extract.JSON): strings
// without quotes and escapes, all others as written. For other documents it returns an empty map.
func leaves(body []byte) map[string]string {
	out := map[string]string{}
	if !json.Valid(body) { // gjson's own check does not limit the depth
		return out
	}
	var walk func(prefix string, v gjson.Result, depth int)
	walk = func(prefix string, v gjson.Result, depth int) {
		index := 0
		v.ForEach(func(key, value gjson.Result) bool {
			name := gjson.Escape(key.String())
			if v.IsArray() {
				name = fmt.Sprint(index)
				index++
			}
			if name == "" || depth == maxDepth {
				return true
			}
			if prefix != "" {
				name = prefix + "." + name
			}
			if value.IsObject() || value.IsArray() {
				walk(name, value, depth+1)
			} else {
				out[name] = value.Raw
				if value.Type == gjson.String {
					out[name] = value.Str
				}
			}
			return true
		})
	}
	if root := gjson.ParseBytes(body); root.IsObject() || root.IsArray() {
		walk("", root, 0)
	}
	return out
}
