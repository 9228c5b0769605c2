package translate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tool is another load generator.
type tool struct {
	name       string
	oneDash    bool   // its flags follow Go's package flag
	needsRate  bool   // it has no closed model
	rateOfEach bool   // its rate is per connection
	onStatus   string // how it treats responses with another status
	usual      asked  // defaults
	flags      []row
	additional []row // flags of its own table, if it shares the others with another tool
}

// row is a flag of a tool with its counterpart.
type row struct {
	flag   string // in the tool's spelling: "-c, --connections N"
	load   string // in prony load's spelling, or notNeeded, or none
	remark string // difference between the two, or the alternative
	set    setter
}

// setter parses a flag's value.
type setter func(a *asked, value string) error

const (
	notNeeded = "not needed" // prony load does it by default
	none      = "none"
)

// onThreads is the remark for flags that start load threads.
const onThreads = "one load thread is usually enough; `--cores 2,3` starts one thread on each of " +
	"these cores"

// statusFlag is a flag that the verbs had in addition to each tool's flags.
var statusFlag = row{flag: "--status N", load: "--status N",
	set: parsed(strconv.Atoi, func(a *asked) *int { return &a.status })}

// parsed returns a setter that sets a field to the parsed value.
func parsed[T any](parse func(string) (T, error), field func(*asked) *T) setter {
	return func(a *asked, value string) (err error) {
		*field(a), err = parse(value)
		return err
	}
}

// text returns a setter that sets a field to the value.
func text(field func(*asked) *string) setter {
	return parsed(func(v string) (string, error) { return v, nil }, field)
}

// on returns a setter that sets a field to true.
func on(field func(*asked) *bool) setter {
	return parsed(strconv.ParseBool, field)
}

// header adds a header field.
func header(a *asked, value string) error {
	a.headers = append(a.headers, value)
	return nil
}

// prefixed returns a setter that adds a header field with a name.
func prefixed(name string) setter {
	return func(a *asked, value string) error { return header(a, name+": "+value) }
}

func login(a *asked, value string) error { return header(a, basic(value)) }

// rate parses a number of requests per second.
func rate(text string) (float64, error) {
	f, err := number(text)
	if err == nil && f <= 0 {
		err = fmt.Errorf("the value must be a number greater than 0")
	}
	return f, err
}

// some parses a duration above 0.
func some(text string) (time.Duration, error) {
	d, err := span(text)
	if err == nil && d == 0 {
		err = fmt.Errorf("the value must be a time greater than 0")
	}
	return d, err
}

var wrkFlags = []row{
	{"-c, --connections N", "--connections N", "",
		parsed(count, func(a *asked) *int { return &a.connections })},
	{"-d, --duration TIME", "--duration TIME", "",
		parsed(some, func(a *asked) *time.Duration { return &a.window })},
	{"-t, --threads N", "--cores LIST", onThreads, nil},
	{"-H, --header FIELD", "--header FIELD", "", header},
	{"--timeout TIME", "--timeout TIME", "a request that times out counts in the latency with " +
		"its timeout",
		parsed(some, func(a *asked) *time.Duration { return &a.timeout })},
	{"-s, --script FILE", none, "describe the requests in a `--scenario` file", nil},
	{"-v, --version", none, "see `prony --version`", nil},
}

// wrk2Flags lists the flags that wrk2 does not share with wrk.
var wrk2Flags = []row{
	{"-R, --rate N", "--rate N --arrivals constant", "wrk2 has a schedule for each connection " +
		"and excludes the latency of its first 10 s; prony load has one schedule and excludes " +
		"0.5 s (`--lead-in`)",
		parsed(rate, func(a *asked) *float64 { return &a.ratePerS })},
	{"-L, --latency", "--spectrum", "", on(func(a *asked) *bool { return &a.spectrum })},
	{"-U, --u_latency", notNeeded, "prony load always prints the service time", nil},
	{"-B, --batch_latency", none, "prony load does not pipeline requests", nil},
}

var heyFlags = []row{
	{"-n N", "--requests N", "",
		parsed(count, func(a *asked) *int { return &a.requests })},
	{"-c N", "--connections N", "",
		parsed(count, func(a *asked) *int { return &a.connections })},
	{"-q N", "--rate N×C --arrivals constant", "hey applies this rate to each of its workers, " +
		"and a worker that waits for a response skips requests; prony load sends all of them",
		parsed(rate, func(a *asked) *float64 { return &a.ratePerS })},
	{"-z TIME", "--duration TIME", "",
		parsed(some, func(a *asked) *time.Duration { return &a.window })},
	{"-t SECONDS", "--timeout TIME", "",
		parsed(span, func(a *asked) *time.Duration { return &a.timeout })},
	{"-m METHOD", "--method METHOD", "", text(func(a *asked) *string { return &a.method })},
	{"-H FIELD", "--header FIELD", "", header},
	{"-A TYPE", "--header 'Accept: TYPE'", "", prefixed("Accept")},
	{"-a USER:PASSWORD", "--header 'Authorization: Basic …'", "", login},
	{"-U AGENT", "--header 'User-Agent: AGENT'", "", prefixed("User-Agent")},
	{"-host NAME", "--header 'Host: NAME'", "", prefixed("Host")},
	{"-d BODY", "--body BODY", "", text(func(a *asked) *string { return &a.body })},
	{"-D FILE", "--body @FILE", "", text(func(a *asked) *string { return &a.file })},
	{"-T TYPE", "--type TYPE", "", text(func(a *asked) *string { return &a.mediaType })},
	{"-h2", "--http2", "", on(func(a *asked) *bool { return &a.http2 })},
	{"-disable-keepalive", "--churn 1", "", on(func(a *asked) *bool { return &a.renew })},
	{"-disable-compression", notNeeded, "prony load requests no compression", nil},
	{"-disable-redirects", notNeeded, "prony load never follows redirects", nil},
	{"-cpus N", "--cores LIST", onThreads, nil},
	{"-o FORMAT", none, "hey writes a row for each request, `--output csv` writes a row for each " +
		"interval", nil},
	{"-x PROXY", none, "use the server's own address", nil},
	{"-enable-tmpl", none, "use placeholders such as `{uuid}` and `{random 1..9}`", nil},
}

var ohaFlags = []row{
	{"-n N", "--requests N", "",
		parsed(count, func(a *asked) *int { return &a.requests })},
	{"-c N", "--connections N", "",
		parsed(count, func(a *asked) *int { return &a.connections })},
	{"-p N", "--streams N", "", parsed(count, func(a *asked) *int { return &a.streams })},
	{"-q N", "--rate N --arrivals constant", "prony load always counts response times from when " +
		"a request was due, as with `--latency-correction`",
		parsed(rate, func(a *asked) *float64 { return &a.ratePerS })},
	{"-z TIME", "--duration TIME", "",
		parsed(some, func(a *asked) *time.Duration { return &a.window })},
	{"-t TIME", "--timeout TIME", "",
		parsed(span, func(a *asked) *time.Duration { return &a.timeout })},
	{"-m, --method METHOD", "--method METHOD", "",
		text(func(a *asked) *string { return &a.method })},
	{"-H FIELD", "--header FIELD", "", header},
	{"-A TYPE", "--header 'Accept: TYPE'", "", prefixed("Accept")},
	{"-a USER:PASSWORD", "--header 'Authorization: Basic …'", "", login},
	{"--host NAME", "--header 'Host: NAME'", "", prefixed("Host")},
	{"-d BODY", "--body BODY", "", text(func(a *asked) *string { return &a.body })},
	{"-D FILE", "--body @FILE", "", text(func(a *asked) *string { return &a.file })},
	{"-T TYPE", "--type TYPE", "", text(func(a *asked) *string { return &a.mediaType })},
	{"--http2", "--http2", "", on(func(a *asked) *bool { return &a.http2 })},
	{"--insecure", "--insecure", "", on(func(a *asked) *bool { return &a.insecure })},
	{"--cacert FILE", "--ca FILE", "", text(func(a *asked) *string { return &a.ca })},
	{"--unix-socket FILE", "--unix FILE", "", text(func(a *asked) *string { return &a.unix })},
	{"--disable-keepalive", "--churn 1", "", on(func(a *asked) *bool { return &a.renew })},
	{"-j, --json", "--output json", "the keys differ",
		on(func(a *asked) *bool { return &a.json })},
	{"--output-format FORMAT", "--output json", "the keys differ",
		func(a *asked, value string) error {
			if a.json = value == "json"; !a.json && value != "text" {
				return fmt.Errorf("prony load supports only the formats text and json")
			}
			return nil
		}},
	{"--latency-correction", notNeeded, "see `-q`", nil},
	{"-w, --wait-ongoing-requests-after-deadline", notNeeded, "prony load always waits " +
		"for the last responses", nil},
	{"--disable-compression", notNeeded, "prony load requests no compression", nil},
	{"-r, --redirect N", notNeeded, "prony load never follows redirects", nil},
	{"--no-pre-lookup", notNeeded, "prony load resolves the name once", nil},
	{"--no-tui", "--view plain", "", on(func(a *asked) *bool { return &a.plain })},
	{"--no-color", notNeeded, "without a terminal, the output has no color", nil},
	{"--disable-color", notNeeded, "without a terminal, the output has no color", nil},
	{"--fps N", notNeeded, "see `--view`", nil},
	{"--stats-success-breakdown", notNeeded, "prony load always counts errors by class", nil},
	{"-o, --output FILE", none, "redirect the standard output", nil},
	{"-x, --proxy URL", none, "use the server's own address", nil},
	{"--connect-to TEXT", none, "use the server's own address, and set its name with a `Host` " +
		"header", nil},
	{"--http-version VERSION", none, "prony load uses HTTP/1.1, or `--http2`, or `--http3`", nil},
	{"--rand-regex-url", none, "use `{key}` in the URL, and `--keys`", nil},
	{"--max-repeat N", none, "use `{key}` in the URL, and `--keys`", nil},
	{"--urls-from-file", none, "describe the requests in a `--scenario` file", nil},
	{"-Z FILE", none, "describe the requests in a `--scenario` file", nil},
	{"-F, --form FIELD", none, "set the whole body with `--body` and its `--type`", nil},
	{"--burst-delay TIME", none, "use a `--rate` that changes over time", nil},
	{"--burst-rate N", none, "use a `--rate` that changes over time", nil},
	{"--ipv4", none, "give the address", nil},
	{"--ipv6", none, "give the address", nil},
	{"-V, --version", none, "see `prony --version`", nil},
}

// onClass describes wrk and wrk2.
const onClass = "counts only statuses above 399 as errors"

// tools lists the tools whose command lines are translated, with their defaults.
var tools = []tool{
	{name: "wrk", onStatus: onClass, flags: slices.Concat(wrkFlags, []row{
		{"-L, --latency", notNeeded, "prony load always prints percentiles", nil},
	}),
		usual: asked{connections: 10, window: 10 * time.Second, timeout: 2 * time.Second,
			status: usualStatus, insecure: true}},
	{name: "wrk2", onStatus: onClass, needsRate: true,
		flags: slices.Concat(wrkFlags, wrk2Flags), additional: wrk2Flags,
		usual: asked{connections: 10, window: 10 * time.Second, timeout: 2 * time.Second,
			status: usualStatus, insecure: true}},
	{name: "hey", onStatus: "lists such responses and counts them as requests", oneDash: true,
		rateOfEach: true, flags: heyFlags,
		usual: asked{connections: 50, requests: 200, timeout: 20 * time.Second,
			mediaType: "text/html", status: usualStatus, insecure: true}},
	{name: "oha", onStatus: "counts such responses as a success", flags: ohaFlags,
		usual: asked{connections: 50, requests: 200, status: usualStatus}},
}

// Table returns the table of a tool's flags in Markdown. Flags with the same counterpart and remark
// share a row. The table of wrk2 omits the flags that it shares with wrk.
func Table(name string) string {
	var b strings.Builder
	for _, t := range tools {
		if t.name != name {
			continue
		}
		fmt.Fprintf(&b, "| %s | prony load | note |\n|---|---|---|\n", t.name)
		rows := t.flags
		if t.additional != nil {
			rows = t.additional
		}
		for i, r := range rows {
			matches := func(x row) bool {
				return r.remark != "" && x.remark == r.remark && x.load == r.load
			}
			if slices.ContainsFunc(rows[:i], matches) {
				continue
			}
			flags := "`" + r.flag + "`"
			for _, x := range rows[i+1:] {
				if matches(x) {
					flags += ", `" + x.flag + "`"
				}
			}
			load := r.load
			if load != none && load != notNeeded {
				load = "`" + load + "`"
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", flags, load, r.remark)
		}
	}
	return b.String()
}
