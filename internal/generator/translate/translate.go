// Package translate writes the command line of another load generator as a line of prony load.
//
//	wrk -t2 -c100 -d30s URL ─► its flags ─► wish ─► prony load URL --connections 100 …
//	                             │ unknown: error, no counterpart: named
//
// It is a pure function: it reads no file, resolves no name and sends nothing. One table of flags
// for each tool is the parser, the translation and the table in the documentation.
//
// Non-goals: offering the load, and tools without a command line of their own (k6, JMeter).
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

// Line is a command line of another tool in the words of prony load.
type Line struct {
	Args  []string // what follows "prony"
	Notes []string // how the tool and prony load differ, and flags without a counterpart
}

// Tools returns the names of the tools whose command lines Translate reads.
func Tools() []string {
	var names []string
	for _, t := range tools {
		names = append(names, t.name)
	}
	return names
}

// Translate writes a tool's command line, without the tool's name, as a line of prony load.
// Unknown flags and values that make no sense are errors that name them.
func Translate(name string, args []string) (*Line, error) {
	i := slices.IndexFunc(tools, func(t tool) bool { return t.name == name })
	if i < 0 {
		return nil, fmt.Errorf("translate %s: want one of %s", name,
			strings.Join(Tools(), ", "))
	}
	w := &wish{tool: &tools[i], asked: tools[i].usual}
	urls, err := w.parse(args)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(urls) != 1 {
		return nil, fmt.Errorf("%s: want one URL, got %d: %q", name, len(urls), urls)
	}
	line, err := w.line(urls[0])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return line, nil
}

// asked is the load that a command line asks for. A tool's defaults are one, too.
type asked struct {
	connections int
	streams     int // requests at once on each connection; 0: one
	requests    int // ends the load unless there is a window
	window      time.Duration
	timeout     time.Duration // 0: the tool waits without limit
	ratePerS    float64       // 0: closed model
	method      string
	headers     []string
	body        string
	file        string // of the body
	mediaType   string
	status      int
	http2       bool
	renew       bool // a connection for each request
	insecure    bool // accept any certificate
	ca          string
	unix        string
	spectrum    bool
	json        bool
	plain       bool // no full-screen view
}

// wish is a command line being translated.
type wish struct {
	tool *tool
	asked
	notes []string
}

func (w *wish) note(format string, args ...any) {
	w.notes = append(w.notes, fmt.Sprintf(format, args...))
}

// line writes the wish as a line of prony load.
func (w *wish) line(text string) (*Line, error) {
	target, _, _ := strings.Cut(text, "#") // the tools do not send it either
	to, err := address.Parse(target, "http", "https")
	if err != nil {
		return nil, fmt.Errorf("%q is not a URL of prony load: %w", address.Shown(text), err)
	}
	if w.tool.needsRate && w.ratePerS == 0 {
		return nil, fmt.Errorf("it needs a rate, such as -R 1000")
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
	// A number of requests is counted from the first one.
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
		w.note("%s waits for an answer without limit; prony load waits 5 s (--timeout)",
			w.tool.name)
	}
	w.note("an answer with another status than %d is an error (--status); %s %s", w.status,
		w.tool.name, w.tool.onStatus)
	return &Line{Args: out, Notes: w.notes}, nil
}

// usualStatus is that of a good answer where --status does not name another.
const usualStatus = 200

// request writes the flags that say what is sent.
func (w *wish) request() (out []string, err error) {
	if w.method != "GET" && w.method != "" {
		out = append(out, "--method", strings.ToUpper(w.method))
	}
	for _, h := range w.headers {
		name, value, ok := strings.Cut(h, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" {
			return nil, fmt.Errorf("header %q is not like \"Accept: text/html\"", h)
		}
		switch strings.ToLower(name) {
		case "content-length", "transfer-encoding":
			w.note("header %s: no counterpart: it is set from the body", name)
			continue
		}
		out = append(out, "--header", name+": "+template.Escape(value))
	}
	body := template.Escape(w.body)
	switch {
	case w.file != "":
		body = "@" + w.file
	case strings.HasPrefix(body, "@"):
		return nil, fmt.Errorf("prony load reads a body that begins with @ from a file: " +
			"write the body into a file and name it with -D")
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

// escaped is a URL without its fragment, which is never sent, and without a placeholder: none of
// these tools has any.
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

// local reports whether prony load takes a host for this machine without asking a resolver.
func local(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// short is a duration without units that are zero, such as 10m for 10m0s.
func short(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = strings.TrimSuffix(text, zero[1:])
		}
	}
	return text
}

// basic is the header of a user and a password (RFC 7617).
func basic(login string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(login))
}
