package importer

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// logged is a line of an access log.
type logged struct {
	method, target string // target is a path with its query, or not HTTP
	status         string // three digits; 000: none was sent
	host           string // of the request, in small letters; "": the line does not have it
	arrived        time.Time
	note           string // how the request differs from the line; "": not at all
}

// textFormat is a format of lines without names of fields. Its expression has the groups time,
// request and status.
type textFormat struct {
	line     *regexp.Regexp
	layout   string // of times
	unescape func(string) string
}

// quoted is a quoted request with escapes of Apache, nginx, Envoy and AWS.
const quoted = `"(?P<request>(?:[^"\\]|\\.)*)"`

// inBrackets is the time of the common format, perhaps with a fraction of a second.
const inBrackets = `\[(?P<time>\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d(?:[.,]\d+)? [+-]\d{4})\] +`

var textFormats = []textFormat{
	// The common or the combined format, as Apache and nginx write it
	// (https://httpd.apache.org/docs/current/logs.html#accesslog).
	{regexp.MustCompile(`^.*?` + inBrackets + quoted + ` "?(?P<status>\d{3})"?(?:\s|$)`),
		commonTime, unescaped},
	// The same with the status before the request.
	{regexp.MustCompile(`^.*?` + inBrackets + `(?P<status>\d{3}) +` + quoted + `(?:\s|$)`),
		commonTime, unescaped},
	// Envoy's default format
	// (https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage).
	{regexp.MustCompile(`^\[(?P<time>\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|[+-]\d\d:\d\d))\] ` +
		quoted + ` (?P<status>\d{3})(?:\s|$)`), time.RFC3339Nano, unescaped},
	// Elastic Load Balancing: Application Load Balancers, whose lines begin with a type and have
	// the time of the request's arrival, and Classic ones (docs.aws.amazon.com,
	// elasticloadbalancing, load-balancer-access-logs).
	{regexp.MustCompile(`^(?:(?:https?|h2|grpcs|wss?) )?(?P<time>\d{4}-\d\d-\d\dT[0-9:.]+Z) ` +
		`\S+ \S+ \S+ (?:-?[0-9.]+ ){3}(?P<status>-|\d{3}) (?:-|\d{3}) -?\d+ -?\d+ ` + quoted +
		` "(?:[^"\\]|\\.)*" \S+ \S+(?: \S+ "[^"]*" "[^"]*" "[^"]*" \S+ ` +
		`(?P<arrived>\d{4}-\d\d-\d\dT[0-9:.]+Z))?(?:\s|$)`), time.RFC3339Nano, unescaped},
	// HAProxy with "option httplog" or httpslog, perhaps after a syslog header (Configuration
	// Manual, 8.2.3). Its times have no zone.
	{regexp.MustCompile(`(?:^|\s)\S+:\d+ ` +
		`\[(?P<time>\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d\.\d{3})\] \S+ \S+/\S+ ` +
		`(?:-?\d+/){4}\+?-?\d+ (?P<status>-1|\d{3}) \+?\d+ \S+ \S+ \S{4} (?:\d+/){4}\+?\d+ ` +
		`\d+/\d+ (?:.*? )?"(?P<request>[^"]*)(?P<end>"?)`), "02/Jan/2006:15:04:05.000", unhashed},
}

var (
	threeDigits = regexp.MustCompile(`^\d{3}$`)
	// virtualHost begins a line of Apache's vhost_combined: a host and its port, then an address.
	virtualHost = regexp.MustCompile(`^([A-Za-z0-9.-]*[A-Za-z][A-Za-z0-9.-]*:\d+) [0-9A-Fa-f.:]+ `)
	// wholeTarget is a target with its origin, as load balancers write it.
	wholeTarget = regexp.MustCompile(`^https?://([^/?#]+)/?(.*)$`)
	hashEscape  = regexp.MustCompile(`#[0-9A-F]{2}`)
)

// commonTime is the format of times in the common format.
const commonTime = "02/Jan/2006:15:04:05 -0700"

// unhashed is a text of HAProxy without its escapes, such as #22.
func unhashed(text string) string {
	return hashEscape.ReplaceAllStringFunc(text, func(e string) string {
		b, _ := hex.DecodeString(e[1:]) // two digits
		return string(b)
	})
}

// logReader reads the lines of an access log in their order.
type logReader struct{ extended extendedLog }

// read reads a line, or returns why it cannot. A format that is not known has the reason
// otherFormat, and a line that describes others has the reason directive.
func (r *logReader) read(l []byte) (out logged, why string) {
	l = bytes.TrimSpace(l)
	switch {
	case r.extended.directs(l):
		return out, directive
	case r.extended.columns != nil:
		return r.extended.read(string(l))
	case bytes.HasPrefix(l, []byte(`{"log":`)): // a file of Docker's driver json-file
		var line struct{ Log string }
		if json.Unmarshal(l, &line) != nil {
			return out, otherFormat
		}
		return r.read([]byte(line.Log))
	case len(l) > 0 && l[0] == '{':
		return jsonLine(l, "")
	}
	for _, f := range textFormats {
		if m := f.line.FindSubmatch(l); m != nil {
			return f.read(l, func(group string) string {
				if i := f.line.SubexpIndex(group); i > 0 {
					return string(m[i])
				}
				return ""
			})
		}
	}
	if begin := bytes.IndexByte(l, '{'); begin > 0 {
		return jsonLine(l[begin:], string(l[:begin]))
	}
	return out, otherFormat
}

// read reads a line that has these groups.
func (f textFormat) read(l []byte, group func(name string) string) (out logged, why string) {
	var err error
	out.arrived, err = time.Parse(f.layout, cmp.Or(group("arrived"), group("time")))
	if err != nil || !isEpoch(out.arrived) {
		return out, "lines whose time is not a valid date"
	}
	if f.line.SubexpIndex("end") > 0 && group("end") == "" {
		return out, "lines that are cut off"
	}
	out.status = group("status")
	if out.status[0] == '-' {
		out.status = "000"
	}
	if host := virtualHost.FindSubmatch(l); host != nil {
		out.host = strings.ToLower(string(host[1]))
	}
	if out, why = out.request(f.unescape(group("request"))); why == "" && f.layout != commonTime {
		out = out.ofPath()
	}
	return out, why
}

// ofPath is a line whose target has no origin. Only those of servers that are no forward proxies
// are changed.
func (l logged) ofPath() logged {
	if m := wholeTarget.FindStringSubmatch(l.target); m != nil {
		l.host, l.target = strings.ToLower(m[1]), "/"+m[2]
	}
	return l
}

// otherFormat is why a line is left out whose format is not known.
const otherFormat = "lines in a format that is not known"

// request adds the method and the target of a request line.
func (l logged) request(text string) (logged, string) {
	m := requestLine.FindStringSubmatch(text)
	if m == nil {
		return l, "lines whose request is not HTTP"
	}
	l.method, l.target = m[1], m[2]
	return l, ""
}

// Names of fields in JSON logs whose values are a whole request: those of Caddy, Envoy, Traefik,
// pino and Google's load balancers, and the variables of nginx. Its $uri is not among them, because
// it lacks the query.
var (
	methodNames = []string{"request_method", "method", "RequestMethod", "request.method",
		"req.method", "httpRequest.requestMethod"}
	targetNames = []string{"request_uri", "path", "RequestPath", "request.uri", "req.url",
		"httpRequest.requestUrl"}
	statusNames = []string{"status", "response_code", "DownstreamStatus", "res.statusCode",
		"httpRequest.status"}
	queryNames = []string{"query_string", "query", "args"}
	hostNames  = []string{"http_host", "RequestHost", "authority", ":authority", "request.host"}
	timeNames  = []string{"ts", "time_iso8601", "time_local", "start_time", "StartUTC",
		"@timestamp", "timestamp", "msec", "time"}
)

// jsonLine reads a line of a JSON log. What stands before the object, such as the name of a
// container, may begin with the time that the object lacks.
func jsonLine(l []byte, before string) (out logged, why string) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(l, &fields) != nil {
		return out, otherFormat
	}
	for _, outer := range []string{"request", "req", "res", "httpRequest"} {
		var inner map[string]json.RawMessage
		_ = json.Unmarshal(fields[outer], &inner) // anything else has no fields
		for name, value := range inner {
			fields[outer+"."+name] = value
		}
	}
	first := func(names []string) string {
		for _, name := range names {
			var text scalar
			if data, ok := fields[name]; ok && text.UnmarshalJSON(data) == nil && text != "" {
				return string(text)
			}
		}
		return ""
	}
	if out.status = first(statusNames); !threeDigits.MatchString(out.status) {
		return out, otherFormat
	}
	out.host = strings.ToLower(first(hostNames))
	var text string
	if json.Unmarshal(fields["request"], &text) == nil { // the request line
		out, why = out.request(text)
	} else {
		out.method, out.target = first(methodNames), first(targetNames)
		query := strings.TrimPrefix(first(queryNames), "?")
		if strings.HasPrefix(query, "{") || strings.HasPrefix(query, "[") {
			return out, "lines whose query is not a text"
		}
		if query != "" && query != "-" && !strings.Contains(out.target, "?") {
			out.target += "?" + query
		}
	}
	switch {
	case why != "":
		return out, why
	case out.method == "" || out.target == "":
		return out, otherFormat
	}
	words := strings.Fields(before)
	for _, text := range []string{first(timeNames), strings.Join(words[:min(len(words), 2)], " "),
		strings.Join(words[:min(len(words), 1)], " ")} {
		if date, known := moment(text); known && isEpoch(date) {
			out.arrived = date
			return out.ofPath(), ""
		}
	}
	return out, "lines whose time is not a valid date"
}

// isEpoch reports whether a time can be counted in ns since 1970.
func isEpoch(date time.Time) bool { return date.Year() >= 1970 && date.Year() < 2262 }

// moment reads a time as logs write it: a date, or seconds or milliseconds since 1970.
func moment(text string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, commonTime, "2006/01/02 15:04:05",
		"2006-01-02T15:04:05.999999999Z0700"} {
		if date, err := time.Parse(layout, text); err == nil {
			return date, true
		}
	}
	integer, fraction, _ := strings.Cut(text, ".")
	seconds, err := strconv.ParseInt(integer, 10, 64)
	const digits = 9
	ns, failed := strconv.ParseInt((fraction + strings.Repeat("0", digits))[:digits], 10, 64)
	const latest = 1 << 33 // in seconds
	switch {
	case err != nil || failed != nil || seconds < 0 || seconds > latest*1000:
		return time.Time{}, false
	case seconds > latest:
		return time.UnixMilli(seconds), true
	}
	return time.Unix(seconds, ns), true
}
