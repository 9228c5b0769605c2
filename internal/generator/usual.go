package generator

import (
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"prony.example/internal/base/files"
	"prony.example/load"
	"prony.example/load/pace"
	"prony.example/load/template"
	"prony.example/record"
)

// Call is a command line of another tool in our terms.
type Call struct {
	URL      string    // what it asks for
	Spec     load.Spec // all but the address and the engine; the host where a flag named one
	Threads  int       // load threads that were asked for; 0: none were
	HTTP2    bool
	Insecure bool     // any certificate will do, as the tool has it
	Notes    []string // where we differ from the tool
}

// ErrHelp says that the command line asks for help.
var ErrHelp = pflag.ErrHelp

// usualLead is offered before the window where the tool has no time of its own to warm up.
const usualLead = 500 * time.Millisecond

// Usuals are the tools whose command lines Usual reads.
func Usuals() []string { return []string{"wrk", "wrk2", "hey", "oha"} }

// Usual reads the usual command line of a tool. What we do not have is an error that names the flag
// and what there is instead. Each of them knows --status besides, the status of a good answer.
func Usual(tool string, args []string) (*Call, error) {
	u := &usual{tool: tool, call: &Call{Insecure: tool != "oha", Spec: load.Spec{
		Name: "load", Model: record.Closed, Lead: usualLead, Seed: 1}}}
	u.request = load.Request{Method: http.MethodGet, WantSize: -1, Status: http.StatusOK}
	var err error
	switch tool {
	case "wrk", "wrk2":
		err = u.wrk(args)
	case "hey":
		err = u.hey(args)
	case "oha":
		err = u.oha(args)
	default:
		err = fmt.Errorf("its command line is not known; known are those of %s",
			strings.Join(Usuals(), ", "))
	}
	if err == nil {
		err = u.finish()
	}
	if errors.Is(err, pflag.ErrHelp) || errors.Is(err, flag.ErrHelp) {
		return nil, ErrHelp
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tool, err)
	}
	return u.call, nil
}

// usual is a command line being read.
type usual struct {
	tool    string
	call    *Call
	request load.Request
	headers []string
	rate    float64
	urls    []string
}

func (u *usual) note(format string, args ...any) {
	u.call.Notes = append(u.call.Notes, fmt.Sprintf(format, args...))
}

// refused is a flag of the tool that we do not have, with what there is instead.
type refused struct{ name, short, instead string }

// flags makes a set in the manner of getopt, in which the refused flags are known as such.
func (u *usual) flags(refusals []refused) *pflag.FlagSet {
	fs := pflag.NewFlagSet(u.tool, pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.IntVar(&u.request.Status, "status", http.StatusOK, "")
	for _, r := range refusals {
		f := fs.VarPF(never(r.instead), r.name, r.short, "")
		f.NoOptDefVal = "true"
	}
	return fs
}

// never is a flag that may not be given.
type never string

func (n never) Set(string) error { return fmt.Errorf("%s", string(n)) }
func (n never) String() string   { return "" }
func (n never) Type() string     { return "" }

// unknown explains a flag that nobody knows; others explain themselves.
func (u *usual) unknown(err error) error {
	var bad *pflag.InvalidValueError
	if errors.As(err, &bad) {
		if n, ok := bad.GetFlag().Value.(never); ok {
			return fmt.Errorf("--%s: %s", bad.GetFlag().Name, string(n))
		}
	}
	text := err.Error()
	if !strings.Contains(text, "unknown") && !strings.Contains(text, "not defined") {
		return err
	}
	return fmt.Errorf("%w; prony load has flags of its own, see prony load --help", err)
}

var wrkRefusals = []refused{
	{"script", "s", "Lua scripts are not run; describe the requests in a scenario, or let wrk " +
		"itself drive"},
	{"batch_latency", "B", "requests are not pipelined, so there are no batches"},
	{"version", "v", "see prony --version"},
}

func (u *usual) wrk(args []string) error {
	fs := u.flags(wrkRefusals)
	conns, threads := fs.StringP("connections", "c", "10", ""), fs.StringP("threads", "t", "", "")
	last, timeout := fs.StringP("duration", "d", "10s", ""), fs.String("timeout", "2s", "")
	fs.StringArrayVarP(&u.headers, "header", "H", nil, "")
	fs.BoolP("latency", "L", false, "") // percentiles are printed in any case
	rate := "0"
	if u.tool == "wrk2" {
		fs.StringVarP(&rate, "rate", "R", "", "")
		fs.BoolP("u_latency", "U", false, "") // service time is printed in any case
	}
	if err := fs.Parse(args); err != nil {
		return u.unknown(err)
	}
	s := &u.call.Spec
	var err error
	s.Connections = read(&err, "connections", *conns, count)
	if *threads != "" {
		u.call.Threads = read(&err, "threads", *threads, count)
	}
	s.Window = read(&err, "duration", *last, span)
	s.Timeout = read(&err, "timeout", *timeout, span)
	if u.tool == "wrk2" {
		if rate == "" {
			return fmt.Errorf("it needs a rate, such as -R 1000; without one use prony wrk")
		}
		u.rate = read(&err, "rate", rate, si)
		u.note("wrk2 drops its first 10 s from its latency; here 0.5 s before the window are not " +
			"counted, and any connection takes the next request that is due")
	}
	u.urls = fs.Args()
	return err
}

// read takes a flag's text; the first that makes no sense is the error.
func read[T any](err *error, flag, text string, as func(string) (T, error)) T {
	v, failed := as(text)
	if failed != nil && *err == nil {
		*err = fmt.Errorf("--%s %q: %w", flag, text, failed)
	}
	return v
}

// si reads a number with wrk's units of 1000.
func si(s string) (float64, error) {
	units := map[string]float64{"k": 1e3, "m": 1e6, "g": 1e9}
	digits, unit := s, 1.0
	if n := len(s); n > 0 && units[strings.ToLower(s[n-1:])] > 0 {
		digits, unit = s[:n-1], units[strings.ToLower(s[n-1:])]
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(f >= 0 && f*unit <= countMax) {
		return 0, fmt.Errorf("want a number such as 100 or 10k")
	}
	return f * unit, nil
}

func count(s string) (int, error) {
	f, err := si(s)
	if err != nil || f < 1 || f > 1e6 || f != float64(int(f)) {
		return 0, fmt.Errorf("want a whole number from 1 to 1M, such as 100 or 10k")
	}
	return int(f), nil
}

// span reads a time such as 30s, or 30 for as many seconds.
func span(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		d, err = time.ParseDuration(s + "s")
	}
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("want a time such as 30s")
	}
	return d, nil
}

// hey's flags are those of package flag, with one dash, so that package reads them.
func (u *usual) hey(args []string) error {
	fs := flag.NewFlagSet(u.tool, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	s := &u.call.Spec
	n, each := fs.Int64("n", 200, ""), fs.Float64("q", 0, "")
	last, wait := fs.Duration("z", 0, ""), fs.Int("t", 20, "")
	fs.IntVar(&s.Connections, "c", 50, "")
	fs.IntVar(&u.request.Status, "status", http.StatusOK, "")
	fs.IntVar(&u.call.Threads, "cpus", 0, "")
	fs.StringVar(&u.request.Method, "m", http.MethodGet, "")
	fs.StringVar(&u.request.Body, "d", "", "")
	file, kind := fs.String("D", "", ""), fs.String("T", "text/html", "")
	accept, login := fs.String("A", "", ""), fs.String("a", "", "")
	agent := fs.String("U", "hey/0.0.1", "")
	fs.StringVar(&s.Host, "host", "", "")
	fs.BoolVar(&u.call.HTTP2, "h2", false, "")
	alone := fs.Bool("disable-keepalive", false, "")
	// Answers are never unpacked and redirects never followed.
	fs.Bool("disable-compression", false, "")
	fs.Bool("disable-redirects", false, "")
	fs.Func("H", "", func(h string) error { u.headers = append(u.headers, h); return nil })
	for _, r := range []refused{
		{"x", "", "there are no proxies; give the server's own address"},
		{"o", "", "the result is not CSV; use prony load --json"},
	} {
		fs.Var(never(r.instead), r.name, "")
	}
	if err := fs.Parse(args); err != nil {
		return u.unknown(err)
	}
	u.urls = fs.Args()
	u.request.Method = strings.ToUpper(u.request.Method)
	u.request.Type = *kind
	if !slices.ContainsFunc(u.headers, func(h string) bool {
		return strings.HasPrefix(strings.ToLower(h), "user-agent:")
	}) {
		u.headers = append(u.headers, "User-Agent: "+*agent)
	}
	u.rate = *each * float64(s.Connections)
	if *each > 0 {
		u.note("hey's rate is for each worker, so %g/s are %g/s in all; a worker that waits for "+
			"an answer drops its ticks, here each request stays due", *each, u.rate)
	}
	s.Timeout = time.Duration(*wait) * time.Second
	return u.common(*n, *last, *file, *accept, *login, *alone)
}

// forever bounds a load that ends after a number of requests.
const forever = time.Hour

// common are what hey and oha share.
func (u *usual) common(n int64, last time.Duration, body, accept, login string, alone bool) error {
	s := &u.call.Spec
	s.Window = last
	if last <= 0 {
		if n < int64(s.Connections) {
			return fmt.Errorf("-n %d is less than -c %d", n, s.Connections)
		}
		s.Requests, s.Window, s.Lead = n, forever, 0
	}
	if s.Timeout <= 0 {
		s.Timeout = forever
	}
	if alone {
		s.Churn = 1
	}
	if accept != "" {
		u.headers = append(u.headers, "Accept: "+accept)
	}
	if login != "" {
		u.headers = append(u.headers,
			"Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte(login)))
	}
	if body != "" {
		b, err := files.Read(body, files.Body)
		if err != nil {
			return fmt.Errorf("read the body: %w", err)
		}
		u.request.Body = string(b)
	}
	return nil
}

var ohaRefusals = []refused{
	{"proxy", "x", "there are no proxies; give the server's own address"},
	{"http-version", "", "HTTP/1.1 is spoken, or HTTP/2 with --http2"},
	{"rand-regex-url", "", "use prony load with {key} in the URL, and --keys"},
	{"urls-from-file", "", "describe the requests in a scenario"},
	{"body-path-lines", "Z", "describe the requests in a scenario"},
	{"form", "F", "give the whole body with -d or -D"},
	{"burst-delay", "", "use a rate that changes, with prony load"},
	{"burst-rate", "", "use a rate that changes, with prony load"},
	{"unix-socket", "", "use prony load --unix"},
	{"output-format", "", "use prony load --json"},
	{"version", "V", "see prony --version"},
}

func (u *usual) oha(args []string) error {
	fs := u.flags(ohaRefusals)
	s := &u.call.Spec
	n := fs.StringP("requests", "n", "200", "")
	fs.IntVarP(&s.Connections, "connections", "c", 50, "")
	fs.Float64VarP(&u.rate, "qps", "q", 0, "")
	last, wait := fs.DurationP("duration", "z", 0, ""), fs.DurationP("timeout", "t", 0, "")
	fs.StringVarP(&u.request.Method, "method", "m", http.MethodGet, "")
	fs.StringVarP(&u.request.Body, "body", "d", "", "")
	fs.StringVarP(&u.request.Type, "content-type", "T", "", "")
	fs.StringVar(&s.Host, "host", "", "")
	fs.StringArrayVarP(&u.headers, "header", "H", nil, "")
	file, accept := fs.StringP("body-file", "D", "", ""), fs.StringP("accept", "A", "", "")
	login := fs.StringP("auth", "a", "", "")
	fs.BoolVar(&u.call.HTTP2, "http2", false, "")
	fs.BoolVar(&u.call.Insecure, "insecure", false, "")
	alone := fs.Bool("disable-keepalive", false, "")
	// What these ask for is so in any case.
	for _, name := range []string{"latency-correction", "no-tui", "no-color", "disable-compression",
		"wait-ongoing-requests-after-deadline", "no-pre-lookup"} {
		short := map[string]string{"wait-ongoing-requests-after-deadline": "w"}[name]
		fs.BoolP(name, short, false, "")
	}
	fs.StringP("redirect", "r", "0", "") // redirects are never followed
	if err := fs.Parse(args); err != nil {
		return u.unknown(err)
	}
	u.urls = fs.Args()
	s.Timeout = *wait
	requests, err := si(*n)
	if err != nil {
		return fmt.Errorf("-n %q: %w", *n, err)
	}
	if u.rate > 0 && !fs.Changed("latency-correction") {
		u.note("time counts from when a request was due, as with oha's --latency-correction")
	}
	return u.common(int64(requests), *last, *file, *accept, *login, *alone)
}

// finish checks what all tools share and makes the scenario.
func (u *usual) finish() error {
	s := &u.call.Spec
	if len(u.urls) != 1 {
		return fmt.Errorf("want one URL, got %d: %q", len(u.urls), u.urls)
	}
	to, err := url.Parse(u.urls[0])
	if err != nil || to.Host == "" || to.Scheme == "" {
		return fmt.Errorf("%q is not a URL such as http://127.0.0.1:8080/path", u.urls[0])
	}
	u.call.URL = u.urls[0]
	if s.Connections < 1 {
		return fmt.Errorf("%d connections are none", s.Connections)
	}
	if u.rate < 0 {
		return fmt.Errorf("a rate of %g/s is none", u.rate)
	}
	if u.rate > 0 {
		s.Model = record.Open
		s.Schedule = pace.Schedule{Arrivals: pace.Constant, Rate: pace.Flat(u.rate)}
	}
	u.note("an answer with another status than %d is an error (see --status); %s %s",
		u.request.Status, u.tool, statusWords[u.tool])
	s.Drain = min(s.Timeout, longestDrain)
	// The path as it was typed; none of these tools knows placeholders in it.
	u.request.Path = template.Escape(afterHost(u.urls[0]))
	u.request.Body = template.Escape(u.request.Body)
	if err := u.header(); err != nil {
		return err
	}
	s.Scenario = load.Scenario{Requests: []load.Request{u.request}, KeyLo: 1, KeyHi: 1}
	return nil
}

// statusWords say what the tools themselves do with a status.
var statusWords = map[string]string{
	"wrk":  "calls only those above 399 errors, and counts them as requests",
	"wrk2": "calls only those above 399 errors, and counts them as requests",
	"hey":  "lists them, and counts them as requests",
	"oha":  "lists them, and calls them a success",
}

// longestDrain is waited at most for the last answers.
const longestDrain = 10 * time.Second

func afterHost(address string) string {
	_, rest, _ := strings.Cut(address, "://")
	rest, _, _ = strings.Cut(rest, "#")
	i := strings.IndexAny(rest, "/?")
	switch {
	case i < 0:
		return "/"
	case rest[i] == '?':
		return "/" + rest[i:]
	}
	return rest[i:]
}

// header moves those that the load sets itself to where they belong.
func (u *usual) header() error {
	for _, h := range u.headers {
		name, value, ok := strings.Cut(h, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" {
			return fmt.Errorf("header %q is not like \"Accept: text/html\"", h)
		}
		switch strings.ToLower(name) {
		case "host":
			u.call.Spec.Host = value
		case "content-type":
			u.request.Type = value
		case "content-length", "transfer-encoding":
			return fmt.Errorf("header %s is set from the body; leave it out", name)
		default:
			u.request.Headers = append(u.request.Headers,
				load.Header{Name: name, Value: template.Escape(value)})
		}
	}
	return nil
}
