package generator

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"prony.example/internal/base/lazyregexp"
	"prony.example/record"
)

// h2load is part of nghttp2: closed clients, or a rate for each client. The text output of versions
// in distributions has no percentiles, so each request is logged to a file, which costs processor
// time.
var h2load = &tool{
	name: "h2load", get: "apt install nghttp2-client, or brew install nghttp2",
	request: []string{"--version"}, version: lazyregexp.New(`nghttp2/(\S+)`), text: "nghttp2/",
	can:   ability{closed: true, open: true, counts: true, checks: "exact", waits: true},
	grain: time.Millisecond,
	measures: "closed clients, a rate as a timer for each client; time counts from when h2load " +
		"submits a request, so the wait for a turn is in no time; logs each request",
	start: startH2load,
	read:  readH2load,
}

const h2loadLog = "requests.tsv"

func startH2load(j *job) (command, error) {
	s, r := j.spec, &j.requests[0]
	argv := []string{j.path, "--h1", "-c", strconv.Itoa(s.Connections), "-t",
		strconv.Itoa(j.threads), "--log-file=" + filepath.Join(j.dir, h2loadLog)}
	if s.Requests > 0 {
		argv = append(argv, "-n", strconv.FormatInt(s.Requests, 10))
	} else {
		argv = append(argv, "-D", strconv.FormatInt(j.length.Milliseconds(), 10)+"ms")
	}
	// h2load has no timeout per request, only one for inactive connections.
	if s.Timeout >= time.Second {
		argv = append(argv, "-N", seconds(int64(s.Timeout)))
	}
	if rate := j.perS(); rate > 0 {
		perItem := rate / float64(s.Connections)
		argv = append(argv, "--rps="+strconv.FormatFloat(perItem, 'f', -1, 64))
	}
	argv, err := j.bodyFile(argv, "-d", r)
	// With a body h2load sends POST by default, otherwise GET.
	usual := map[bool]string{true: "POST", false: "GET"}[r.Body.String() != ""]
	if r.Method != usual {
		argv = append(argv, "-H", ":method: "+r.Method)
	}
	for _, h := range r.Headers {
		name := h.Name
		if strings.EqualFold(name, "host") {
			name = ":authority"
		}
		argv = append(argv, "-H", name+": "+h.Value.String())
	}
	return command{argv: append(argv, j.url(r))}, err
}

// Patterns of h2load's text output.
var (
	h2Finished = lazyregexp.New(`finished in ([\d.]+\w+), ([\d.]+) req/s`)
	h2Requests = lazyregexp.New(`requests: (\d+) total, (\d+) started, (\d+) done, ` +
		`(\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout`)
	h2Status  = lazyregexp.New(`status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx`)
	h2Traffic = lazyregexp.New(`traffic: \S+ \((\d+)\) total`)
	h2Clients = lazyregexp.New(`(\d+) total client\(s\)`)
	h2Names   = lazyregexp.New(`(?m)^\s+min\s+max\s+.*$`)
	h2Row     = lazyregexp.New(`(?m)^(time for request|time for connect|request\s*):\s+(.*)$`)
)

func readH2load(j *job, out *output) (*tally, error) {
	t, err := importH2load(string(out.text))
	if err != nil {
		return nil, err
	}
	// The log has the status of each request, the text only its class.
	log, err := os.ReadFile(filepath.Join(j.dir, h2loadLog))
	if err != nil {
		return nil, err
	}
	rows := h2Rows(string(log), j.requests[0].Status)
	t.notes, t.conns, t.threads = nil, 0, 0
	t.good, t.service, t.errored = rows.good, rows.service, rows.errored
	t.errors.Status, t.errors.Example = rows.errors.Status, rows.errors.Example
	t.errors.Read = max(rows.errors.Read, t.errors.Read)
	return t, nil
}

// h2Rows parses h2load's log: begin of a request in microseconds since 1970, its status, -1 if
// none, and its duration in microseconds.
func h2Rows(log string, want int) *tally {
	r := &rows{unit: 1e3}
	for line := range strings.Lines(log) {
		c := strings.Fields(line)
		if len(c) < 3 {
			continue
		}
		status, good := int(integer(c[1])), false
		if status == 0 {
			r.errors.Read++
			example(&r.errors, "a request received no response")
		} else {
			good = r.answered(status, want, 1)
		}
		r.add(integer(c[0]), integer(c[2]), good)
	}
	return r.sum()
}

func importH2Log(text string) (*tally, error) {
	t := h2Rows(text, 0)
	t.note("the h2load output does not contain whether the run had a rate (--rps)")
	return t, nil
}

// importH2load parses h2load's text output. Since 1.66 its table also has percentiles.
func importH2load(text string) (*tally, error) {
	m := h2Requests.FindStringSubmatch(text)
	f := h2Finished.FindStringSubmatch(text)
	if m == nil || f == nil {
		return nil, fmt.Errorf(`the h2load output has no lines "finished in …" and "requests: ` +
			`…"; check that it is complete`)
	}
	t := &tally{durationNs: nanoseconds(f[1])}
	// In a run by time, h2load computes its rate only over the main part.
	if done, rate := integer(m[3]), number(f[2]); done > 0 && rate > 0 {
		t.durationNs = secondsOf(float64(done) / rate)
	}
	t.errors.Read, t.errors.Timeout = integer(m[6]), integer(m[7])
	if s := h2Status.FindStringSubmatch(text); s != nil {
		t.good = integer(s[1]) + integer(s[2])
		t.errors.Status = integer(s[3]) + integer(s[4])
		example(&t.errors, "%s responses with status 4xx, %s with status 5xx", s[3], s[4])
	}
	if t.errors.Status == 0 {
		t.errors.Example = ""
	}
	if b := h2Traffic.FindStringSubmatch(text); b != nil {
		t.bytesIn = integer(b[1])
	}
	for _, c := range h2Clients.FindAllStringSubmatch(text, -1) {
		t.threads++
		t.conns += int(integer(c[1]))
	}
	columns := []string{"min", "max", "mean"}
	if h := h2Names.FindString(text); h != "" {
		columns = strings.Fields(h)
	}
	for _, r := range h2Row.FindAllStringSubmatch(text, -1) {
		var d record.Dist
		for i, cell := range strings.Fields(r[2]) {
			if i < len(columns) {
				put(&d, columns[i], nanoseconds(cell))
			}
		}
		if strings.Contains(r[1], "connect") {
			d.Count = int64(t.conns)
			t.connect = d
		} else {
			d.Count = t.good + t.errors.Status
			t.service = d
		}
	}
	if t.service.P50Ns == 0 {
		t.note("the h2load output has no percentiles; run h2load with --log-file and import the " +
			"log")
	}
	t.note("the h2load output does not contain whether the run had a rate (--rps)")
	t.note("the times are of all responses, including responses with an error status")
	return t, nil
}
