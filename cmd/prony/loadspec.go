package main

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"prony.example/internal/base/address"
	"prony.example/internal/base/cli"
	"prony.example/internal/base/clock"
	"prony.example/internal/base/files"
	"prony.example/internal/generator"
	"prony.example/internal/generator/distributed/local"
	"prony.example/internal/observe/host"
	"prony.example/internal/observe/stallfree"
	"prony.example/internal/suite"
	"prony.example/load"
	"prony.example/load/network"
	"prony.example/load/pace"
	"prony.example/load/template"
	"prony.example/record"
)

// loadFlags describe the load and its server.
type loadFlags struct {
	spec     load.Spec // completed by plan
	streams  int
	rate     string
	arrivals string
	trace    string
	traces   string
	users    string
	think    string

	method   string
	headers  []string
	body     string
	kind     string
	keys     string
	status   int
	want     string
	scenario string
	file     []byte // content of the scenario file

	network  string
	engine   string
	http2    bool
	http3    bool
	unix     string
	insecure bool
	ca       string
	cert     string // paths of the client's certificate and its key
	certKey  string
	connect  string   // HOST:PORT instead of the URL's
	warmup   string   // steady, or a duration
	remote   []string // hosts other than this machine that may be loaded

	given func(flag string) bool
}

// add declares the flags that all verbs with loads share.
func (f *loadFlags) add(c *cobra.Command) {
	fs, s := c.Flags(), &f.spec
	f.given = fs.Changed
	fs.IntVarP(&s.Connections, "connections", "c", 64, "number of connections")
	fs.IntVar(&f.streams, "streams", 1,
		"concurrent requests on each connection (HTTP/2, HTTP/3, gRPC)")
	fs.DurationVarP(&s.Window, "duration", "d", 10*time.Second,
		"length of the window, unless --rate or --users is a shape")
	fs.DurationVar(&s.Lead, "lead-in", 500*time.Millisecond,
		"load before the window, excluded from results; of a shape, its beginning, by default "+
			"none")
	fs.DurationVar(&s.Timeout, "timeout", 5*time.Second,
		"timeout of a request, and longest wait for outstanding responses at the end")

	fs.StringVarP(&f.method, "method", "X", "GET", "request method")
	fs.StringArrayVarP(&f.headers, "header", "H", nil, "header field 'Name: value'; repeatable")
	fs.StringVar(&f.body, "body", "", "request body, or @FILE")
	fs.StringVar(&f.kind, "type", "", "media type of the body (default text/plain)")
	fs.StringVar(&f.keys, "keys", "1-1", "range from which {key} is drawn, such as 1-50000")
	fs.Float64Var(&s.Scenario.Zipf, "zipf", 0,
		"exponent of the Zipf distribution of keys; 0 is uniform")
	fs.IntVar(&f.status, "status", 200, "expected status")
	fs.StringVar(&f.want, "want", "", "expected body, compared byte for byte (default: any body)")
	fs.StringVar(&f.scenario, "scenario", "",
		"YAML file with a mix or a flow of requests")

	fs.IntSliceVar(&s.Cores, "cores", nil,
		"cores, with one load thread pinned to each (default: one thread, not pinned)")
	fs.Uint64Var(&s.Seed, "seed", 1, "seed of arrivals, keys, mix and pauses")
	addNetwork(c, &f.network)
	addEngine(c, &f.engine, "")
	cli.FormerWord(c, "engine", "stack", load.NetHTTP)
	fs.BoolVar(&f.http2, "http2", false, "use HTTP/2: over TLS for https, otherwise in the clear")
	fs.BoolVar(&f.http3, "http3", false, "use HTTP/3 (https URLs)")
	fs.StringVar(&f.unix, "unix", "", "Unix socket to connect to")
	fs.StringVar(&f.warmup, "warmup", "", "closed load before the measurement, excluded from "+
		"results: 'steady' (until the rate is constant) or a time such as 30s")
	fs.StringSliceVar(&f.remote, "remote", nil, remoteHelp)
	fs.BoolVarP(&f.insecure, "insecure", "k", false, "accept any certificate")
	fs.StringVar(&f.ca, "ca", "", "PEM file of trusted certificates")
	fs.StringVar(&f.cert, "cert", "", "PEM file of the client's certificate, and of its key")
	fs.StringVar(&f.certKey, "cert-key", "", "PEM file of the key, if it is not in --cert")
	fs.StringVar(&f.connect, "connect-to", "",
		"HOST:PORT to connect to instead of the URL's")
}

// addNetwork declares the flag of a simulated network.
func addNetwork(c *cobra.Command, text *string) {
	c.Flags().StringVar(text, "network", "", "network to simulate between load and service: "+
		"'delay 5ms' or 'delay 5ms ± 1ms', the time added to each round trip")
}

// addEngine declares the flag that chooses an engine, with a usage before the list of engines.
func addEngine(c *cobra.Command, engine *string, usage string) {
	*engine = load.Auto
	cli.OneOf(c, engine, "engine", usage, load.Engines...)
}

// addModel declares the flags of the load model.
func (f *loadFlags) addModel(c *cobra.Command) {
	fs, s := c.Flags(), &f.spec
	fs.StringVarP(&f.rate, "rate", "r", "",
		"open model: requests/s, such as 5000 or 'ramp 100..2000 in 30s' (default: closed model)")
	f.arrivals = pace.Poisson
	cli.OneOf(c, &f.arrivals, "arrivals", "distribution of arrivals in the open model",
		pace.Poisson, pace.Constant)
	fs.IntVar(&s.Most, "max-connections", 0,
		"open model: number of connections that -c may grow to")
	fs.StringVar(&f.trace, "trace", "", "open model: file of arrivals to replay")
	fs.StringVar(&f.traces, "traces", "", "share of requests with a trace id (traceparent), such "+
		"as 1%; the slowest are listed")
	fs.StringVar(&f.users, "users", "",
		"closed model: virtual users, such as 700 or 'ramp 0..700 in 5m, 700 for 5m'")
	fs.StringVar(&f.think, "think", "",
		"pause of a user: 1s, 'uniform 500ms..2s' or 'exponential 1s'")
	fs.Int64VarP(&s.Requests, "requests", "n", 0, "number of requests or flows after which the "+
		"load ends, without the lead-in")
	fs.IntVar(&s.Churn, "churn", 0, "number of responses after which a connection is renewed")
	cli.OneOf(c, &s.Pacing, "pacing", "open model: sleep until a request is due (frugal), or poll "+
		"shortly before (precise)\n(default: precise if the load has its own cores)", load.Frugal,
		load.Precise)
}

// offer is a load and its generator.
type offer struct {
	spec load.Spec
	by   generator.Prony
	url  string
	file []byte // content of the scenario file
	note string // about the addresses that stay unused; empty: none
	many manyFlags
	crew local.Crew // running generators

	watcher *stallfree.Nearby // of a search; nil: stalls are not recorded

	warmup string // as requested
	warmed record.Warmup
}

// plan converts the flags to a load.
func (f *loadFlags) plan(ctx context.Context, target string) (*offer, error) {
	o := &offer{spec: f.spec, url: target, by: generator.Prony{Engine: f.engine},
		warmed: record.Warmup{Steady: true}} // no warm-up: assume a steady service
	if err := f.check(); err != nil {
		return nil, err
	}
	if f.network != "" {
		var err error
		if o.spec.Network, err = network.Parse(f.network); err != nil {
			return nil, cli.Usagef("--network: %w", err)
		}
	}
	at, err := f.aim(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &o.spec
	s.Name, s.Model, s.Drain = "load", record.Closed, s.Timeout
	var traces suite.Percent
	if f.traces != "" {
		if err := traces.UnmarshalText([]byte(f.traces)); err != nil {
			return nil, cli.Usagef("--traces: %w", err)
		}
	}
	// A new salt gives a repeated load other trace ids, which must not collide in a store of
	// traces.
	s.Trace = load.Trace{Share: float64(traces), Salt: uint64(clock.Wall().UnixNano())}
	if s.Pacing == "" {
		s.Pacing = load.Frugal
		if len(s.Cores) > 0 || runtime.NumCPU() >= 4 {
			s.Pacing = load.Precise
		}
	}
	err = reading(ctx, "load", func() error {
		if err := f.request(at, s); err != nil {
			return err
		}
		return f.model(s)
	})
	if err != nil {
		return nil, err
	}
	s.Connections *= f.streams
	if err := authorize(o, at); err != nil {
		return nil, err
	}
	o.file, o.warmup = f.file, f.warmup
	if _, _, err := o.warming(); err != nil {
		return nil, err
	}
	if c := o.by.Stack; c != nil {
		if err := load.Messages(ctx, *c, s.Scenario.Requests); err != nil {
			return nil, err
		}
	}
	if s.Requests > 0 {
		err = f.fit(s, 24*time.Hour) // the last response ends it
		if err == nil && !f.given("duration") {
			err = enough(s)
		}
		if err != nil {
			return nil, err
		}
	}
	return o, checkCores(s.Cores)
}

// check reports invalid values before anything is resolved or opened.
func (f *loadFlags) check() error {
	s := &f.spec
	for _, row := range []struct {
		wrong bool
		flag  string
		want  string
	}{
		{s.Connections < 1, "connections", "at least 1"},
		{f.given("duration") && s.Window <= 0, "duration", "a time such as 10s"},
		{s.Lead < 0, "lead-in", "a time, or 0"},
		{s.Timeout <= 0, "timeout", "a time such as 5s"},
		{f.streams < 1, "streams", "at least 1"},
		{f.status < 100 || f.status > load.LastCallStatus, "status",
			"an HTTP status from 100 to 599, or 600 plus a gRPC code"},
		{f.given("requests") && s.Requests < 1, "requests", "at least 1"},
		{s.Churn < 0, "churn", "a number of at least 0"},
		{s.Most < 0, "max-connections", "a number of at least 0"},
		{!(s.Scenario.Zipf >= 0 && s.Scenario.Zipf < math.Inf(1)), "zipf",
			"an exponent of at least 0"},
		{!isToken(f.method), "method", "a word of letters, such as GET"},
		{strings.ContainsAny(f.kind, "\r\n\x00"), "type", "one line"},
	} {
		if row.wrong {
			return fmt.Errorf("--%s must be %s", row.flag, row.want)
		}
	}
	if err := refuse(f.given,
		noEffect{f.scenario != "", "method header body type keys zipf status want", "is for one " +
			"request, but --scenario describes all requests; write it into the file"},
		noEffect{f.rate+f.trace == "", "max-connections pacing", "is for the open model; add " +
			"--rate or --trace"},
		noEffect{f.rate == "", "arrivals", "is for --rate; add --rate"},
		noEffect{f.streams > 1, "max-connections churn", "needs one request at a time on each " +
			"connection; leave out --streams"}); err != nil {
		return err
	}
	count := map[string]int{}
	for _, h := range f.headers {
		name, _, ok := strings.Cut(h, ":")
		if !ok || !isToken(name) || strings.ContainsAny(h, "\r\n\x00") {
			return fmt.Errorf("--header %q must have the form 'Name: value' in one line", h)
		}
		count[strings.ToLower(name)]++
	}
	if f.kind != "" {
		count["content-type"]++
	}
	for _, name := range []string{"Host", "Content-Type"} {
		if n := count[strings.ToLower(name)]; n > 1 {
			return fmt.Errorf("--header and --type: a request has one %s field, not %d", name, n)
		}
	}
	return nil
}

// isToken reports whether a text is a token of HTTP, valid as a method or name (RFC 9110, 5.6.2).
func isToken(text string) bool {
	return text != "" && strings.IndexFunc(text, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune("()<>@,;:\\\"/[]?={}", r)
	}) < 0
}

// model sets the load model and its schedule.
func (f *loadFlags) model(s *load.Spec) error {
	if f.rate != "" && f.users != "" || f.trace != "" && f.rate+f.users != "" {
		return fmt.Errorf("--rate, --trace and --users define different loads; set only one of " +
			"them")
	}
	if f.think != "" && f.users == "" {
		return fmt.Errorf("--think is the pause of virtual users: add --users")
	}
	switch {
	case f.rate != "":
		rate, err := pace.Parse(f.rate)
		if err != nil {
			return fmt.Errorf("--rate: %w", err)
		}
		if mean := rate.Mean(0, int64(time.Hour)); !(mean > 0 && mean < math.Inf(1)) {
			return fmt.Errorf("--rate %s: the rate must be greater than 0 requests/s", f.rate)
		}
		s.Model, s.Schedule = record.Open, pace.Schedule{Arrivals: f.arrivals, Rate: rate}
		return f.fit(s, time.Duration(rate.Duration()))
	case f.trace != "":
		trace, err := readTrace(f.trace)
		if err != nil {
			return err
		}
		s.Model, s.Schedule = record.Open, pace.Schedule{Arrivals: pace.Replay, Trace: trace}
		// The last arrival also gets a gap, in which its response counts as throughput.
		last := trace[len(trace)-1]
		return f.fit(s, time.Duration(last+max(last/int64(len(trace)), int64(time.Millisecond))))
	case f.users != "":
		return f.people(s)
	}
	return nil
}

// people sets a closed model with virtual users.
func (f *loadFlags) people(s *load.Spec) error {
	var users suite.Users
	if err := users.UnmarshalText([]byte(f.users)); err != nil {
		return fmt.Errorf("--users: %w", err)
	}
	var think suite.Think
	if f.think != "" {
		if err := think.UnmarshalText([]byte(f.think)); err != nil {
			return fmt.Errorf("--think: %w", err)
		}
	}
	s.Users = &load.Users{Number: users.Profile, Think: load.Think{
		Kind: think.Kind, Lo: time.Duration(think.Lo), Hi: time.Duration(think.Hi)}}
	if !f.given("connections") {
		s.Connections = int(math.Ceil(users.Max() / float64(f.streams)))
	}
	return f.fit(s, time.Duration(users.Duration()))
}

// fit sets the window to the length of a load with an end of its own, unless it was given. The
// lead-in is the beginning of such a load.
func (f *loadFlags) fit(s *load.Spec, length time.Duration) error {
	if length == 0 {
		return nil
	}
	if !f.given("lead-in") {
		s.Lead = 0
	}
	if s.Lead >= length {
		return fmt.Errorf("--lead-in %v leaves nothing of a load that ends after %v; use a "+
			"shorter lead-in, or none", s.Lead, length)
	}
	if !f.given("duration") {
		s.Window = length - s.Lead
	}
	return nil
}

func readTrace(name string) ([]int64, error) {
	in, err := files.Open(name)
	if err != nil {
		return nil, fmt.Errorf("--trace: %w", err)
	}
	defer in.Close()
	trace, err := pace.ReadTrace(in)
	if err == nil && len(trace) == 0 {
		err = fmt.Errorf("the file contains no arrivals")
	}
	if err != nil {
		return nil, fmt.Errorf("read trace %s: %w", name, err)
	}
	return trace, nil
}

// request sets the scenario: from a file, or the one request of the flags.
func (f *loadFlags) request(to *address.Address, s *load.Spec) error {
	if f.scenario != "" {
		data, err := files.Kept(f.scenario, files.Settings)
		if err != nil {
			return fmt.Errorf("--scenario: %w", err)
		}
		f.file = data
		sc, err := suite.ReadScenario(f.scenario, data)
		if err != nil {
			return err
		}
		s.Scenario, err = generator.Scenario(*sc, "")
		if err == nil && sc.Connections > 0 && !f.given("connections") {
			s.Connections = sc.Connections
		}
		return err
	}
	method, err := f.methodOf(to.Scheme)
	if err != nil {
		return err
	}
	if method == http.MethodHead && f.given("want") {
		return fmt.Errorf("--want cannot be combined with HEAD, because the response to a HEAD " +
			"request has no body")
	}
	r := load.Request{
		Method: method, Path: to.Path, Type: f.kind, Status: f.status, Want: f.want,
		HasWant: f.given("want"), WantSize: -1,
	}
	if r.Body, err = bodyOf(f.body); err != nil {
		return err
	}
	for _, h := range f.headers {
		name, value, _ := strings.Cut(h, ":")
		value = strings.TrimSpace(value)
		if strings.EqualFold(name, "host") && strings.ContainsFunc(value, isBeyondASCII) {
			at, err := address.Parse("http://"+value, "http")
			if err != nil {
				return fmt.Errorf("--header %s: %w", h, err)
			}
			value = at.Host
		}
		r.Headers = append(r.Headers, load.Header{Name: name, Value: value})
	}
	lo, hi, ok := strings.Cut(f.keys, "-")
	if s.Scenario.KeyLo, err = strconv.ParseUint(lo, 10, 64); err == nil && ok {
		s.Scenario.KeyHi, err = strconv.ParseUint(hi, 10, 64)
	}
	if err != nil || !ok || s.Scenario.KeyLo > s.Scenario.KeyHi {
		return fmt.Errorf("--keys %q must be a range such as 1-50000", f.keys)
	}
	texts := []string{r.Path, r.Body}
	for _, h := range r.Headers {
		texts = append(texts, h.Value)
	}
	switch keyed := strings.Contains(strings.Join(texts, "\n"), "{key}"); {
	case !keyed && (f.given("keys") || f.given("zipf")):
		return fmt.Errorf("--keys and --zipf need {key} in the URL, a header field or the body")
	case f.given("type") && f.body == "":
		return fmt.Errorf("--type needs --body: it is the media type of the body")
	}
	s.Scenario.Requests = []load.Request{r}
	return nil
}

func isBeyondASCII(r rune) bool { return r >= utf8.RuneSelf }

// bodyOf returns the body of a flag, or the content of @FILE, in which braces have no meaning.
func bodyOf(flag string) (string, error) {
	name, ok := strings.CutPrefix(flag, "@")
	if !ok {
		return flag, nil
	}
	data, err := files.Read(name, files.Body)
	if err != nil {
		return "", fmt.Errorf("--body: %w", err)
	}
	return template.Escape(string(data)), nil
}

func checkCores(want []int) error {
	if len(want) == 0 { // nothing is pinned, which works on all systems
		return nil
	}
	have, err := host.Cores()
	if err != nil {
		return fmt.Errorf("--cores: %w; omit --cores", err)
	}
	for i, c := range want {
		if slices.Contains(want[:i], c) {
			return fmt.Errorf("--cores names core %d twice", c)
		}
		if !slices.Contains(have, c) {
			return fmt.Errorf("core %d is not one of %v, the cores that this process may "+
				"use", c, have)
		}
	}
	return nil
}
