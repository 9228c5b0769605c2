package importer

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// logged is a line of an access log.
type logged struct {
	method, target string // target is a path with its query, or not HTTP
	status         string // three digits
	host           string // of the request, in small letters; "": the line does not have it
	arrived        time.Time
}

var (
	// envoyLine is a line of Envoy's default format: its time, request and status
	// (https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage).
	envoyLine = regexp.MustCompile(`^\[(\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|[+-]\d\d:\d\d))\] ` +
		`"((?:[^"\\]|\\.)*)" (\d{3})(?:\s|$)`)
	threeDigits = regexp.MustCompile(`^\d{3}$`)
	// virtualHost begins a line of Apache's vhost_combined: a host and its port, then an address.
	virtualHost = regexp.MustCompile(`^([A-Za-z0-9.-]*[A-Za-z][A-Za-z0-9.-]*:\d+) [0-9A-Fa-f.:]+ `)
)

// commonTime is the format of times in the common format.
const commonTime = "02/Jan/2006:15:04:05 -0700"

// readLine reads a line of an access log, or returns why it cannot. A format that is not known has
// the reason otherFormat.
func readLine(l []byte) (out logged, why string) {
	if l = bytes.TrimSpace(l); len(l) > 0 && l[0] == '{' {
		return jsonLine(l)
	}
	layout, m := commonTime, logLine.FindSubmatch(l)
	if m == nil {
		layout, m = time.RFC3339Nano, envoyLine.FindSubmatch(l)
	}
	if m == nil {
		return out, otherFormat
	}
	var err error
	if out.arrived, err = time.Parse(layout, string(m[1])); err != nil || !isEpoch(out.arrived) {
		return out, "lines whose time is not a valid date"
	}
	out.status = string(m[3])
	if host := virtualHost.FindSubmatch(l); host != nil {
		out.host = strings.ToLower(string(host[1]))
	}
	return out.request(unescaped(string(m[2])))
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

// Names of fields in JSON logs whose values are a whole request: those of Caddy, Envoy, Traefik and
// the variables of nginx. Its $uri is not among them, because it lacks the query.
var (
	methodNames = []string{"request_method", "method", "RequestMethod"}
	targetNames = []string{"request_uri", "path", "RequestPath"}
	statusNames = []string{"status", "response_code", "DownstreamStatus"}
	queryNames  = []string{"query_string", "query", "args"}
	hostNames   = []string{"http_host", "RequestHost", "authority", ":authority"}
	timeNames   = []string{"ts", "time_iso8601", "time_local", "start_time", "StartUTC",
		"@timestamp", "timestamp", "msec", "time"}
)

// jsonLine reads a line of a JSON log.
func jsonLine(l []byte) (out logged, why string) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(l, &fields) != nil {
		return out, otherFormat
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
	var request struct{ Method, Host, URI string }
	var text string
	if json.Unmarshal(fields["request"], &text) == nil { // the request line
		out, why = out.request(text)
	} else if json.Unmarshal(fields["request"], &request) == nil { // Caddy
		out.method, out.target = request.Method, request.URI
		out.host = strings.ToLower(request.Host)
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
	var known bool
	if out.arrived, known = moment(first(timeNames)); !known || !isEpoch(out.arrived) {
		return out, "lines whose time is not a valid date"
	}
	return out, ""
}

// isEpoch reports whether a time can be counted in ns since 1970.
func isEpoch(date time.Time) bool { return date.Year() >= 1970 && date.Year() < 2262 }

// moment reads a time as logs write it: a date, or seconds since 1970.
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
	if err != nil || failed != nil || seconds < 0 || seconds > 1<<33 {
		return time.Time{}, false
	}
	return time.Unix(seconds, ns), true
}
