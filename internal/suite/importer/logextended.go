package importer

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// extendedLog is a log in the extended format of W3C, as IIS and CloudFront write it
// (https://www.w3.org/TR/WD-logfile.html). Lines that begin with # name the columns of those that
// follow.
type extendedLog struct {
	columns []string
	date    string // of lines with only a time
	iis     bool
}

// directive is the reason of lines that are no requests.
const directive = "a directive"

var (
	directiveLine = regexp.MustCompile(
		`^#(Software|Version|Date|Start-Date|End-Date|Remark|Fields):[ \t]*(.*)$`)
	// extendedValue is a value; one with spaces is quoted.
	extendedValue = regexp.MustCompile(`"(?:[^"]|"")*"|\S+`)
	fewDigits     = regexp.MustCompile(`^\d{1,3}$`)
)

// directs reports whether a line is a directive, and obeys it.
func (e *extendedLog) directs(l []byte) bool {
	m := directiveLine.FindSubmatch(l)
	if m == nil {
		return false
	}
	switch value := string(m[2]); string(m[1]) {
	case "Software":
		e.iis = strings.HasPrefix(value, "Microsoft")
	case "Date", "Start-Date":
		e.date, _, _ = strings.Cut(value, " ")
	case "Fields":
		e.columns = strings.Fields(strings.ToLower(value))
	}
	return true
}

// read reads a line with the columns.
func (e *extendedLog) read(l string) (out logged, why string) {
	values := extendedValue.FindAllString(l, -1)
	if len(values) != len(e.columns) {
		return out, "lines with more or fewer values than #Fields"
	}
	value := func(names ...string) string {
		for _, name := range names {
			if i := slices.Index(e.columns, name); i >= 0 && values[i] != "-" {
				return strings.Trim(values[i], `"`)
			}
		}
		return ""
	}
	out.method, out.target = value("cs-method"), value("cs-uri-stem", "cs-uri")
	out.status = value("sc-status")
	if out.method == "" || out.target == "" || !fewDigits.MatchString(out.status) {
		return out, otherFormat
	}
	out.status = ("00" + out.status)[len(out.status)-1:]
	out.host = strings.ToLower(value("cs-host", "x-host-header", "cs(host)"))
	if e.iis && strings.Contains(out.target, "+") {
		out.note = "a + in a path, which IIS also writes for a space, is sent as +"
	}
	if query := value("cs-uri-query"); query != "" && !strings.Contains(out.target, "?") {
		out.target += "?" + query
	}
	if slices.Contains(e.columns, "x-edge-location") {
		// CloudFront escapes what the client sent, also the percent signs of its escapes.
		out.target = strings.ReplaceAll(out.target, "%25", "%")
	}
	date := value("date")
	if date == "" {
		date = e.date
	}
	var err error
	out.arrived, err = time.Parse("2006-1-2 15:4:5", date+" "+value("time"))
	if err != nil || !isEpoch(out.arrived) {
		return out, "lines whose time is not a valid date"
	}
	return out.ofPath(), ""
}
