// Package translate converts command lines of other load generators to prony load.
//
//	wrk -t2 -c100 -d30s URL ─► its flags ─► wish ─► prony load URL --connections 100 …
//	                             │ unknown: error, no counterpart: named
//
// It is a pure function: it reads no files, resolves no names and sends nothing. One table of flags
// per tool is the parser, the translation and the table in the documentation.
//
// Non-goals: running the load, and tools that are not configured by command lines (k6, JMeter).
package translate

import (
	"encoding/base64"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"prony.example/internal/base/address"
	"prony.example/load/template"
)

// Line is the equivalent command line of prony load.
type Line struct {
	Args  []string // arguments after "prony"
	Notes []string // differences between the tool and prony load, and flags without a counterpart
}

// Tools returns the names of the tools that Translate supports.
func Tools() []string {
	var names []string
	for _, t := range tools {
		names = append(names, t.name)
	}
	return names
}

// Translate converts a tool's command line, without the tool's name, to a command line of prony
// load. Unknown flags and invalid values are errors that name them.
func Translate(name string, args []string) (*Line, error) {
	i := slices.IndexFunc(tools, func(t tool) bool { return t.name == name })
	if i < 0 {
		return nil, fmt.Errorf("%s is not a load generator that can be translated; choose one of "+
			"%s", name,
			strings.Join(Tools(), ", "))
	}
	w := &wish{tool: &tools[i], asked: tools[i].usual}
	urls, err := w.parse(args)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(urls) != 1 {
		return nil, fmt.Errorf("%s: the command line must have one URL, got %d: "+
			"%q", name, len(urls), urls)
	}
	line, err := w.line(urls[0])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return line, nil
}

// asked is the load that a command line requests, or a tool's defaults.
type asked struct {
	connections int
	streams     int // concurrent requests on each connection; 0: one
	requests    int // ends the load unless a window does
	window      time.Duration
	timeout     time.Duration // 0: no timeout
	ratePerS    float64       // 0: closed model
	method      string
	headers     []string
	body        string
	file        string // path of the body
	mediaType   string
	status      int
	http2       bool
	renew       bool // one connection per request
	insecure    bool // accept any certificate
	ca          string
	unix        string
	spectrum    bool
	json        bool
	plain       bool // no full-screen view
}

// wish is a command line during its translation.
type wish struct {
	tool *tool
	asked
	notes []string
}

func (w *wish) note(format string, args ...any) {
	w.notes = append(w.notes, fmt.Sprintf(format, args...))
}

// line returns the wish as a command line of prony load.
func (w *wish) line(text string) (*Line, error) {
	target, _, _ := strings.Cut(text, "#") // the tools do not send it either
	to, err := address.Parse(target, "http", "https")
	if err != nil {
		return nil, fmt.Errorf("%q is not a URL of prony load: %w", address.Shown(text), err)
	}
	if w.tool.needsRate && w.ratePerS == 0 {
		return nil, fmt.Errorf("the command line needs a rate, such as -R 1000")
	}
	out := []string{"load", escaped(text), "--connections", strconv.Itoa(w.connections)}
	add := func(when bool, words ...string) {
		if when {
			out = append(out, words...)
		}
	}
	rate := w.ratePerS
	if w.tool.rateOfEach {
		rate *= float64(w.connections)
	}
	add(w.streams > 1, "--streams", strconv.Itoa(w.streams))
	// A number of requests counts from the first one, so it needs a lead-in of 0.
	add(w.window == 0, "--requests", strconv.Itoa(w.requests), "--lead-in", "0s")
	add(w.window > 0, "--duration", short(w.window))
	add(rate > 0, "--rate", strconv.FormatFloat(rate, 'f', -1, 64), "--arrivals", "constant")
	add(w.timeout > 0, "--timeout", short(w.timeout))
	add(w.http2, "--http2")
	add(w.renew, "--churn", "1")
	add(to.Scheme == "https" && w.insecure, "--insecure")
	add(w.ca != "", "--ca", w.ca)
	add(w.unix != "", "--unix", w.unix)
	add(!local(to.Name) && w.unix == "", "--remote", to.Name)
	request, err := w.request()
	if err != nil {
		return nil, err
	}
	out = append(out, request...)
	add(w.status != usualStatus, "--status", strconv.Itoa(w.status))
	add(w.spectrum, "--spectrum")
	add(w.json, "--output", "json")
	add(w.plain, "--view", "plain")
	if w.timeout == 0 {
		w.note("%s waits for a response without limit; prony load waits 5 s (--timeout)",
			w.tool.name)
	}
	w.note("prony load counts a response with a status other than %d as an error (--status); %s "+
		"%s", w.status,
		w.tool.name, w.tool.onStatus)
	return &Line{Args: out, Notes: w.notes}, nil
}

// usualStatus is the status of a good response without --status.
const usualStatus = 200

// request returns the flags that describe the request.
func (w *wish) request() (out []string, err error) {
	if w.method != "GET" && w.method != "" {
		out = append(out, "--method", strings.ToUpper(w.method))
	}
	for _, h := range w.headers {
		name, value, ok := strings.Cut(h, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" {
			return nil, fmt.Errorf(`header field %q does not have the form "Accept: text/html"`, h)
		}
		switch strings.ToLower(name) {
		case "content-length", "transfer-encoding":
			w.note("header field %s: left out, because prony load sets it from the body", name)
			continue
		}
		out = append(out, "--header", name+": "+template.Escape(value))
	}
	body := template.Escape(w.body)
	switch {
	case w.file != "":
		body = "@" + w.file
	case strings.HasPrefix(body, "@"):
		return nil, fmt.Errorf("prony load reads a body that begins with @ from a file: write " +
			"the body into a file and pass it with -D")
	}
	if body == "" {
		return out, nil
	}
	out = append(out, "--body", body)
	if w.mediaType != "" {
		out = append(out, "--type", w.mediaType)
	}
	return out, nil
}

// escaped returns a URL without its fragment, which is never sent, and with escaped placeholders,
// because these tools have none.
func escaped(text string) string {
	text, _, _ = strings.Cut(text, "#")
	scheme, tail, _ := strings.Cut(text, "://")
	host := len(tail)
	if i := strings.IndexAny(tail, "/?"); i >= 0 {
		host = i
	}
	path := template.Escape(tail[host:])
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return scheme + "://" + tail[:host] + path
}

// local reports whether prony load recognizes a host as this machine without a resolver.
func local(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// short formats a duration without zero units, such as 10m instead of 10m0s.
func short(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = strings.TrimSuffix(text, zero[1:])
		}
	}
	return text
}

// basic returns the header field for a user and a password (RFC 7617).
func basic(login string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(login))
}
