package generator

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	rows, err := h2Rows(string(log), j.requests[0].Status)
	if err != nil {
		return nil, fmt.Errorf("the log of h2load: %w", err)
	}
	t.notes, t.conns, t.threads = rows.notes, 0, 0
	t.good, t.service, t.errored = rows.good, rows.service, rows.errored
	t.errors.Status, t.errors.Example = rows.errors.Status, rows.errors.Example
	t.errors.Read = max(rows.errors.Read, t.errors.Read)
	return t, nil
}

// h2Rows parses h2load's log: begin of a request in microseconds since 1970, its status, -1 if
// none, and its duration in microseconds. A last line without a line end may lack digits.
func h2Rows(log string, want int) (*tally, error) {
	r, clock, number := &rows{}, &moments{}, 0
	for line := range strings.Lines(log) {
		number++
		if !strings.HasSuffix(line, "\n") {
			r.note(NoteCutRow)
			break
		}
		if err := r.h2Line(line, want, clock); err != nil {
			err.Line = number
			return nil, err
		}
	}
	return r.sum(), nil
}

func (r *rows) h2Line(line string, want int, clock *moments) *Misread {
	c := strings.Fields(line)
	if len(c) == 0 {
		return nil
	}
	fail := func(i int, err error) *Misread {
		return &Misread{Column: strconv.Itoa(i + 1), Text: c[i], Reason: err.Error()}
	}
	if len(c) < 3 {
		return fail(0, errors.New("a line of the log has 3 values"))
	}
	begin, err := clock.ns(c[0])
	if err != nil {
		return fail(0, err)
	}
	elapsed, err := span(c[2], 1e3)
	if err == nil && elapsed > histMax {
		err = errTooLong
	}
	if err != nil {
		return fail(2, err)
	}
	good := false
	if c[1] == "-1" {
		r.errors.Read++
		example(&r.errors, "a request received no response")
	} else {
		status, err := integer(c[1])
		if err != nil {
			return fail(1, err)
		}
		good = r.answered(int(status), want, 1)
	}
	r.add(begin, elapsed, good)
	return nil
}

func importH2Log(text string) (*tally, error) {
	t, err := h2Rows(text, 0)
	if err != nil {
		return nil, err
	}
	t.note(NoteRatedUnknown, "h2load", "--rps")
	return t, nil
}

// h2Labels are the lines that the patterns must match.
var h2Labels = labels(
	`finished in\b`, `finished in [\d.]+\w+, [\d.]+ req/s`,
	`^requests:`, `^requests: \d+ total, \d+ started, \d+ done, \d+ succeeded, \d+ failed, `+
		`\d+ errored, \d+ timeout$`,
	`^status codes:`, `: \d+ 2xx, \d+ 3xx, \d+ 4xx, \d+ 5xx$`,
	`^traffic:`, `: \S+ \(\d+\) total`)

// importH2load parses h2load's text output. Since 1.66 its table also has percentiles.
func importH2load(text string) (*tally, error) {
	s := newScan(text)
	s.check(h2Labels)
	s.once(h2Requests)
	m, f, status := s.find(h2Requests), s.find(h2Finished), s.find(h2Status)
	if *s.err != nil {
		return nil, *s.err
	}
	if m == nil || f == nil || status == nil {
		return nil, fmt.Errorf(`the h2load output has no lines "finished in …", "requests: …" ` +
			`and "status codes: …"; check that it is complete`)
	}
	t := &tally{durationNs: f.nanoseconds(1)}
	t.good = status.count(1) + status.count(2)
	t.errors.Status = status.count(3) + status.count(4)
	// In a run by time, h2load computes its rate only over the main part. It is the rate of
	// responses with any status, without errored requests (req_success in h2load.cc).
	if responses, rate := t.good+t.errors.Status, f.number(2); responses > 0 && rate > 0 {
		ns, err := scaled(float64(responses)/rate, 1e9)
		f.fail(2, err)
		t.durationNs = ns
	}
	t.errors.Timeout = m.count(7) // which h2load also counts as errored (process_timedout_streams)
	t.errors.Read = max(m.count(6)-t.errors.Timeout, 0)
	if t.errors.Status > 0 {
		example(&t.errors, "%s responses with status 4xx, %s with status 5xx", status.group(3),
			status.group(4))
	}
	if b := s.find(h2Traffic); b != nil {
		t.bytesIn = b.count(1)
	}
	for _, c := range s.all(h2Clients) {
		t.threads++
		t.conns += int(c.count(1))
	}
	t.h2Table(s)
	if t.service.P50Ns == 0 {
		t.note(NoteH2loadNoPercentiles)
	}
	t.note(NoteRatedUnknown, "h2load", "--rps")
	t.note(NoteErrorStatus)
	return t, *s.err
}

// h2Table reads the table of times, whose columns depend on the version.
func (t *tally) h2Table(s *scan) {
	columns := []string{"min", "max", "mean"}
	if h := s.find(h2Names); h != nil {
		columns = strings.Fields(h.group(0))
	}
	for _, r := range s.all(h2Row) {
		var d record.Dist
		for i, cell := range strings.Fields(r.group(2)) {
			if i < len(columns) && percentileOrTime(columns[i]) {
				ns, err := nanoseconds(cell)
				r.fail(2, err)
				put(&d, columns[i], ns)
			}
		}
		if strings.Contains(r.group(1), "connect") {
			d.Count = int64(t.conns)
			t.connect = d
		} else {
			d.Count = t.good + t.errors.Status
			t.service = d
		}
	}
}

// percentileOrTime reports whether put reads a column of the table; others have shares.
func percentileOrTime(name string) bool {
	return slices.Contains([]string{"min", "max", "mean", "median"}, name) || percentile(name) > 0
}
