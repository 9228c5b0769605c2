package importer

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"prony.example/load/pace"
)

const (
	headMax = 20  // paths of a log with a request of their own
	tailMax = 100 // less frequent paths, from which one request draws with equal shares
	spanMax = 5 * time.Minute
)

var (
	// requestLine is a request of a log. Its target may have spaces.
	requestLine = regexp.MustCompile(`(?s)^([A-Z]+) (.+?)(?: HTTP/\d(?:\.\d)?)?$`)
	// logEscape is an escape of Apache or nginx.
	logEscape = regexp.MustCompile(`\\(?:x[0-9A-Fa-f]{2}|["\\bnrtv])`)
)

// isLog says whether at least half of the first lines are of a log.
func isLog(data []byte) bool {
	lines, matches := 0, 0
	var r logReader
	for l := range bytes.Lines(data) {
		if len(bytes.TrimSpace(l)) == 0 {
			continue
		}
		_, why := r.read(l)
		if why == directive {
			continue
		}
		if lines++; lines > 20 {
			break
		}
		if why != otherFormat {
			matches++
		}
	}
	return matches > 0 && 2*matches >= lines
}

// unescaped is a text of a log without its escapes.
func unescaped(text string) string {
	return logEscape.ReplaceAllStringFunc(text, func(e string) string {
		if e[1] == 'x' {
			b, _ := hex.DecodeString(e[2:]) // two digits
			return string(b)
		}
		if i := strings.IndexByte("bnrtv", e[1]); i >= 0 {
			return "\b\n\r\t\v"[i : i+1]
		}
		return e[1:]
	})
}

// seen is a path of a log.
type seen struct {
	method, path  string
	count, status int
	statuses      map[int]int // how often it has each
}

func (d *Draft) readLog(_ string, data []byte) error {
	byName := map[string]*seen{}
	var order []*seen
	var times []int64 // in ns
	hosts := map[string]int{}
	var lines logReader
	for l := range bytes.Lines(data) {
		if len(bytes.TrimSpace(l)) == 0 {
			continue
		}
		line, why := lines.read(l)
		if why == directive {
			continue
		}
		d.Found++
		method, path := line.method, line.target
		if why == "" {
			why = d.unfit(method, path, int(line.status[0]-'0'))
		}
		if why != "" {
			d.leave(why)
			continue
		}
		times = append(times, line.arrived.UnixNano())
		if line.note != "" {
			d.change(line.note, 1)
		}
		if line.host != "" && line.host != "-" {
			hosts[authority("", authority("https:", line.host))]++
		}
		path = strings.ReplaceAll(path, "#", "%23") // which a server received in the path
		key := method + " " + path
		if byName[key] == nil {
			byName[key] = &seen{method: method, path: path, statuses: map[int]int{}}
			order = append(order, byName[key])
		}
		r := raw{method: method}
		r.status, _ = strconv.Atoi(line.status) // three digits
		same := byName[key]
		same.count++
		same.statuses[r.expected()]++
		same.status = frequent(same.statuses)
		for _, note := range r.changes {
			d.change(note, 1)
		}
	}
	d.mixed(hosts)
	if d.Found == 0 {
		return errors.New("the log has no lines; choose a log with requests")
	}
	slices.SortStableFunc(order, func(a, b *seen) int { return cmp.Compare(b.count, a.count) })
	for _, s := range order[:min(headMax, len(order))] {
		d.add(raw{method: s.method, url: s.path, status: s.status, count: s.count})
	}
	if len(order) > headMax {
		d.tail(order[headMax:])
	}
	d.moments(times)
	return nil
}

// mixed notes requests of several hosts, given as numbers by host, because all go to one service.
func (d *Draft) mixed(hosts map[string]int) {
	most, all := "", 0
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		if all += hosts[host]; hosts[host] > hosts[most] {
			most = host
		}
	}
	if n := all - hosts[most]; n > 0 {
		d.change("a request of another host than "+oneLine(most)+" goes to the same service", n)
	}
}

// unfit returns why a line's request is left out; "": it is not.
func (d *Draft) unfit(method, path string, class int) string {
	switch {
	case slices.Contains([]string{"POST", "PUT", "PATCH"}, method):
		return "requests with a body, which a log does not have"
	case method != "GET" && method != "HEAD":
		return "methods other than GET and HEAD"
	case nul(path):
		return "a NUL in its text"
	case !strings.HasPrefix(path, "/"):
		return "requests whose target is not a path of this server"
	case isStatic(path, ""):
		return "static files"
	case class < 1:
		return "the client ended the request before a response"
	case class >= 4:
		return "requests whose response was an error (4xx, 5xx)"
	case class == 1:
		return "requests that switched to another protocol (101)"
	}
	return ""
}

// tail merges infrequent paths into one request that draws from them. It expects their most
// frequent status, and leaves out paths with another.
func (d *Draft) tail(remaining []*seen) {
	most := map[int]int{}
	status := remaining[0].status
	for _, s := range remaining {
		if most[s.status] += s.count; most[s.status] > most[status] {
			status = s.status
		}
	}
	var paths []string
	all, tried := 0, 0
	for _, s := range remaining {
		if s.method != "GET" || s.status != status {
			d.leaveAll("rare requests with another method or status than most rare requests",
				s.count)
			continue
		}
		all += s.count // paths beyond the limit count for the weight
		if tried++; len(paths) == tailMax || tried > 10*tailMax {
			continue
		}
		if path := pathOf(d.hide(raw{url: s.path}).url); !strings.Contains(path, "\x00") {
			paths = append(paths, strings.TrimPrefix(path, "/")) // paths with a secret are left out
		}
	}
	switch len(paths) {
	case 0:
		if all > 0 {
			d.leaveAll("rare requests with a secret in their path", all)
		}
	case 1:
		d.add(raw{method: "GET", url: "/" + paths[0], status: status, count: all})
	default:
		d.add(raw{method: "GET", url: "/" + hole("{pick "+strings.Join(paths, "|")+"}"),
			status: status, count: all, note: fmt.Sprintf(
				"one of the %d least frequent paths, drawn for each request", len(paths))})
	}
}

// moments sets the arrivals by times in ns, from the busiest spanMax. If all times are whole
// seconds, it spreads the arrivals of a second evenly, because they would otherwise all be sent at
// its beginning.
func (d *Draft) moments(times []int64) {
	if len(times) < 2 {
		return
	}
	slices.Sort(times)
	from, to := 0, 0 // indexes of the busiest part
	for i, j := 0, 0; j < len(times); j++ {
		for times[j]-times[i] >= int64(spanMax) {
			i++
		}
		if j-i > to-from {
			from, to = i, j
		}
	}
	if remaining := len(times) - (to - from + 1); remaining > 0 {
		d.Outside = remaining
	}
	spread := !slices.ContainsFunc(times, func(ns int64) bool { return ns%int64(time.Second) != 0 })
	times = times[from : to+1]
	for i := 0; i < len(times); {
		n := 1
		for i+n < len(times) && times[i+n] == times[i] {
			n++
		}
		for k := range n {
			arrival := times[i] - times[0]
			if spread {
				arrival += int64(k) * int64(time.Second) / int64(n)
			}
			d.Arrivals = append(d.Arrivals, arrival)
		}
		i += n
	}
	length := time.Duration(times[len(times)-1] - times[0])
	d.Span = (length.Truncate(time.Second) + time.Second).String()
}

// WriteTrace writes the arrivals as a trace.
func (d *Draft) WriteTrace(w io.Writer) error {
	p, err := pace.Schedule{Arrivals: pace.Replay, Trace: d.Arrivals}.Process(0)
	if err != nil {
		return err
	}
	return pace.WriteTrace(w, p, d.Arrivals[len(d.Arrivals)-1]+1)
}
