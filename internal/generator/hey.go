package generator

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"prony.example/internal/base/lazyregexp"
)

// hey is github.com/rakyll/hey: closed workers. With a rate, each worker has a ticker, which drops
// ticks while the worker waits for a response.
var hey = &tool{
	name: "hey", get: "apt install hey, or go install github.com/rakyll/hey@latest",
	text: "hey [options...]",
	can: ability{closed: true, open: true, counts: true, renew: true, checks: "exact",
		methods: []string{"GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"}},
	grain: time.Millisecond,
	measures: "closed workers, a rate as a ticker for each worker that drops ticks; time counts " +
		"from before hey takes a connection",
	start: startHey,
	read:  readHey,
}

// heyTemplate is a template for hey's output, because its summary has times only to 0.1 ms. hey
// passes the output through Printf, so it must not contain percent signs.
const heyTemplate = "prony {{.NumRes}} {{.Total.Seconds}} {{.SizeTotal}}" +
	`{{range $e, $n := .ErrorDist}}
error {{$n}} {{$e}}{{end}}{{range $i, $v := .Lats}}
{{$v}} {{index $.StatusCodes $i}} {{index $.ConnLats $i}}{{end}}`

// heyMost is the number of results that hey keeps; it only counts later ones.
const heyMost = 1000000

func startHey(j *job) (command, error) {
	s, r := j.spec, &j.requests[0]
	argv := []string{j.path, "-o", heyTemplate, "-c", strconv.Itoa(s.Connections),
		"-m", r.Method, "-t", seconds(int64(s.Timeout)), "-cpus", strconv.Itoa(j.threads),
		"-disable-compression", "-disable-redirects"}
	if s.Requests > 0 {
		argv = append(argv, "-n", strconv.FormatInt(s.Requests, 10))
	} else {
		argv = append(argv, "-z", j.length.String())
	}
	if perS := j.perS(); perS > 0 {
		perItem := perS / float64(s.Connections)
		argv = append(argv, "-q", strconv.FormatFloat(perItem, 'g', -1, 64))
	}
	if s.Churn == 1 {
		argv = append(argv, "-disable-keepalive")
	}
	for _, h := range r.Headers {
		switch strings.ToLower(h.Name) {
		case "host":
			argv = append(argv, "-host", h.Value.String())
		case "content-type":
			argv = append(argv, "-T", h.Value.String())
		default:
			argv = append(argv, "-H", h.Name+": "+h.Value.String())
		}
	}
	argv, err := j.bodyFile(argv, "-D", r)
	return command{argv: append(argv, j.url(r))}, err
}

// bodyFile writes the body to a file and adds the flag with its path, unless the body is empty.
func (j *job) bodyFile(argv []string, flag string, r *request) ([]string, error) {
	body := r.Body.String()
	if body == "" {
		return argv, nil
	}
	path := filepath.Join(j.dir, "body")
	return append(argv, flag, path), os.WriteFile(path, []byte(body), 0o600)
}

func readHey(j *job, out *output) (*tally, error) {
	lines := bufio.NewScanner(bytes.NewReader(out.text))
	t := &rows{}
	var total, size, count int64
	var elapsed float64
	if !lines.Scan() {
		return nil, fmt.Errorf("hey printed no results: %s", out.tail())
	}
	if _, err := fmt.Sscanf(lines.Text(), "prony %d %g %d", &total, &elapsed, &size); err != nil {
		return nil, fmt.Errorf("the first line of hey's output, %q, has another form than "+
			"expected: %w", lines.Text(), err)
	}
	var err error
	if t.durationNs, err = scaled(elapsed, 1e9); err != nil {
		return nil, fmt.Errorf("the time in hey's output, %q: %w", lines.Text(), err)
	}
	t.bytesIn = size
	var connect samples
	for lines.Scan() {
		stored, err := t.heyLine(lines.Text(), j.requests[0].Status, &connect)
		if err != nil {
			return nil, fmt.Errorf("hey printed %q: %w", lines.Text(), err)
		}
		count += stored
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	// hey checks only its first million responses; a note says that the others are assumed to be
	// good.
	if remaining := total - count - t.errors.Total() + t.errors.Status; count >= heyMost &&
		remaining > 0 {
		t.good += remaining
		t.note(NoteHeyFirstOnly, heyMost, remaining)
	}
	t.connect = connect.dist()
	return t.sum(), nil
}

// heyLine reads a line after the first one, and returns the number of its responses.
func (r *rows) heyLine(line string, want int, connect *samples) (int64, error) {
	if text, ok := strings.CutPrefix(line, "error "); ok {
		count, subject, _ := strings.Cut(text, " ")
		n, err := integer(count)
		blame(&r.errors, subject, n)
		return 0, err
	}
	f := strings.Fields(line)
	if len(f) == 0 {
		return 0, nil
	}
	if len(f) != 3 {
		return 0, fmt.Errorf("a response needs a line of 3 values, but this one has %d", len(f))
	}
	elapsed, err := span(f[0], 1e9)
	if err != nil {
		return 0, err
	}
	status, err := integer(f[1])
	if err != nil {
		return 0, err
	}
	c, err := span(f[2], 1e9)
	if err != nil {
		return 0, err
	}
	r.book(elapsed, r.answered(int(status), want, 1))
	if c > 0 {
		connect.add(c, 1)
	}
	return 1, nil
}

// Patterns of the text of hey and oha, which have the same form with other units.
var (
	summaryRate  = lazyregexp.New(`(?m)^\s*Requests/sec:\s+([\d.]+)\s*$`)
	heyData      = lazyregexp.New(`(?m)^\s*Total data:\s+(\d+) bytes`)
	summaryStat  = lazyregexp.New(`(?m)^\s*(Slowest|Fastest|Average|Total):\s+([\d.]+|NaN) (\w+)`)
	summaryShare = lazyregexp.New(`(?m)^\s*([\d.]+)%+ in ([\d.]+|NaN) (\w+)`)
	summaryCode  = lazyregexp.New(`(?m)^\s*\[(\d{3})\]\s+(\d+) responses`)
	summaryError = lazyregexp.New(`(?m)^\s*\[(\d+)\]\s+(\S.*)$`)
)

// summaryLabels are the lines that the patterns must match.
var summaryLabels = labels(
	`^\s*(Slowest|Fastest|Average|Total):`, `:\s+([\d.]+|-?NaN) (ns|us|ms|secs?|m|min|hr?)$`,
	`^\s*Requests/sec:`, `:\s+([\d.]+|NaN)$`,
	`%+ in\b`, `^\s*[\d.]+%+ in ([\d.]+|NaN) (ns|us|ms|secs?|m|min|hr?)$`,
	`^\s*\[\S*\]\s+\S+ resp`, `^\s*\[\d{3}\]\s+\d+ responses$`)

// summaryUnits maps units to nanoseconds.
var summaryUnits = map[string]float64{"ns": 1, "us": 1e3, "ms": 1e6, "sec": 1e9, "secs": 1e9,
	"m": 60e9, "min": 60e9, "h": 3600e9, "hr": 3600e9}

// importSummary parses the text of hey or oha; usual is the unit in an example of it.
func importSummary(text, usual string) (*tally, error) {
	t, s := &tally{}, newScan(text)
	s.check(summaryLabels)
	s.once(summaryRate)
	d := &t.service
	for _, m := range s.all(summaryStat) {
		ns := m.span(2, summaryUnits[m.group(3)])
		if m.group(1) == "Total" {
			t.durationNs = ns
		} else {
			put(d, m.group(1), ns)
		}
	}
	if t.durationNs == 0 && *s.err == nil {
		return nil, fmt.Errorf(`the output has no line such as "Total: 2.0000 %s"; check that it `+
			"is complete", usual)
	}
	for _, m := range s.all(summaryCode) {
		n := m.count(2)
		d.Count += n
		t.answered(int(m.count(1)), 0, n)
	}
	if _, failed := s.cut("Error distribution:"); failed != nil {
		for _, m := range failed.all(summaryError) {
			if strings.TrimSpace(m.group(2)) == ohaEnd {
				t.censored += m.count(1)
			} else {
				blame(&t.errors, m.group(2), m.count(1))
			}
		}
	}
	for _, m := range s.all(summaryShare) {
		put(d, m.group(1), m.span(2, summaryUnits[m.group(3)]))
	}
	t.counted(s)
	return t, *s.err
}

// counted compares the number of requests with rate × time, within their printed digits, because
// an output that is cut in its distributions otherwise looks whole.
func (t *tally) counted(s *scan) {
	m := s.find(summaryRate)
	if m == nil {
		return
	}
	rate, elapsed := m.number(1), float64(t.durationNs)/1e9
	all, counted := rate*elapsed, float64(t.good+t.errors.Total()+t.censored)
	if counted < heyMost && all-counted > 1+1e-3*all {
		t.note(NoteFewerCounted, int64(math.Round(all)), int64(counted))
	}
}

// importHey parses hey's text.
func importHey(text string) (*tally, error) {
	t, err := importSummary(text, "secs")
	if err != nil {
		return nil, err
	}
	s := newScan(text)
	if d := s.find(heyData); d != nil {
		t.bytesIn = d.count(1)
	}
	if r := s.find(summaryRate); r != nil && t.service.Count >= heyMost {
		all := int64(r.number(1) * float64(t.durationNs) / 1e9)
		t.note(NoteHeyFirst, t.service.Count, all)
		t.service.MeanNs = 0
	}
	t.note(NoteHeyResolution)
	t.note(NoteAllResponses)
	t.note(NoteHeyRated)
	return t, *s.err
}

// importRows parses the CSV of hey and of oha: a row for each response, with times in seconds. The
// columns are its begin, duration and status.
func importRows(text string, columns ...string) (*tally, error) {
	s, err := openSheet(text, columns, nil)
	if err != nil {
		return nil, err
	}
	r := &rows{}
	for s.next() {
		from, elapsed := s.offset(0, 1e9), s.span(1, 1e9)
		r.durationNs = max(r.durationNs, from+elapsed)
		r.book(elapsed, r.answered(s.status(2), 0, 1))
	}
	if s.err == nil && s.repeated > 0 {
		return nil, errSeveral // the times of each begin at 0
	}
	return r.sum(), s.finish(&r.tally)
}

func importHeyRows(text string) (*tally, error) {
	t, err := importRows(text, "offset", "response-time", "status-code")
	if err != nil {
		return nil, err
	}
	t.note(NoteHeyResolution)
	t.note(NoteNoUnanswered, "hey")
	t.note(NoteRatedUnknown, "hey", "-q")
	if t.good+t.errors.Status >= heyMost {
		t.note(NoteHeyResponses, heyMost)
	}
	return t, nil
}
