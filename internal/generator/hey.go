package generator

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
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
	t.durationNs, t.bytesIn = secondsOf(elapsed), size
	var connect samples
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "error "); ok {
			n, subject, _ := strings.Cut(text, " ")
			blame(&t.errors, subject, integer(n))
			continue
		}
		f := strings.Fields(lines.Text())
		if len(f) != 3 {
			continue
		}
		count++
		status := int(integer(f[1]))
		t.book(secondsOf(number(f[0])), t.answered(status, j.requests[0].Status, 1))
		if c := secondsOf(number(f[2])); c > 0 {
			connect.add(c, 1)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	// hey checks only its first million responses; a note says that the others are assumed to be
	// good.
	if remaining := total - count - t.errors.Total() + t.errors.Status; count >= heyMost &&
		remaining > 0 {
		t.good += remaining
		t.note("hey stores only its first %d responses: times and statuses of the last %d "+
			"responses are unknown",
			heyMost, remaining)
	}
	t.connect = connect.dist()
	return t.sum(), nil
}

// Patterns of the text of hey and oha, which have the same form with other units.
var (
	heyRate      = lazyregexp.New(`(?m)^\s*Requests/sec:\s+([\d.]+)`)
	heyData      = lazyregexp.New(`(?m)^\s*Total data:\s+(\d+) bytes`)
	summaryStat  = lazyregexp.New(`(?m)^\s*(Slowest|Fastest|Average|Total):\s+([\d.]+) (\w+)`)
	summaryShare = lazyregexp.New(`(?m)^\s*([\d.]+)%+ in ([\d.]+) (\w+)`)
	summaryCode  = lazyregexp.New(`(?m)^\s*\[(\d{3})\]\s+(\d+) responses`)
	summaryError = lazyregexp.New(`(?m)^\s*\[(\d+)\]\s+(\S.*)$`)
)

// summaryUnits maps units to nanoseconds.
var summaryUnits = map[string]float64{"ns": 1, "us": 1e3, "ms": 1e6, "sec": 1e9, "secs": 1e9,
	"m": 60e9, "min": 60e9, "h": 3600e9, "hr": 3600e9}

// importSummary parses the text of hey or oha; usual is the unit in an example of it.
func importSummary(text, usual string) (*tally, error) {
	t := &tally{}
	d := &t.service
	for _, s := range summaryStat.FindAllStringSubmatch(text, -1) {
		ns := scaled(number(s[2]), summaryUnits[s[3]])
		if s[1] == "Total" {
			t.durationNs = ns
		} else {
			put(d, s[1], ns)
		}
	}
	if t.durationNs == 0 {
		return nil, fmt.Errorf(`the output has no line such as "Total: 2.0000 %s"; check that it `+
			"is complete", usual)
	}
	for _, s := range summaryCode.FindAllStringSubmatch(text, -1) {
		d.Count += integer(s[2])
		t.answered(int(integer(s[1])), 0, integer(s[2]))
	}
	_, failed, _ := strings.Cut(text, "Error distribution:")
	for _, e := range summaryError.FindAllStringSubmatch(failed, -1) {
		if e[2] == ohaEnd {
			t.censored += integer(e[1])
		} else {
			blame(&t.errors, e[2], integer(e[1]))
		}
	}
	for _, p := range summaryShare.FindAllStringSubmatch(text, -1) {
		put(d, p[1], scaled(number(p[2]), summaryUnits[p[3]]))
	}
	return t, nil
}

// importHey parses hey's text.
func importHey(text string) (*tally, error) {
	t, err := importSummary(text, "secs")
	if err != nil {
		return nil, err
	}
	if d := heyData.FindStringSubmatch(text); d != nil {
		t.bytesIn = integer(d[1])
	}
	if t.service.Count >= heyMost {
		if r := heyRate.FindStringSubmatch(text); r != nil {
			all := int64(number(r[1]) * float64(t.durationNs) / 1e9)
			t.note("hey stores only its first %d responses, but its rate counts about %d; "+
				"nothing more is known of the others, and the mean is omitted because hey "+
				"divides their times by the wrong count",
				t.service.Count, all)
			t.service.MeanNs = 0
		}
	}
	t.note("the times of hey have steps of 0.1 ms")
	t.note("the percentiles are of all responses, including responses with an error status")
	t.note("the hey output does not contain whether the run had a rate (-q); with a rate, hey " +
		"dropped requests while it waited")
	return t, nil
}

// each calls f with the named columns of every row of a CSV file with a header line. It skips
// incomplete rows, with a note.
func (r *rows) each(text string, names []string, f func(cells []string)) error {
	lines := csv.NewReader(strings.NewReader(text))
	lines.ReuseRecord, lines.FieldsPerRecord, lines.LazyQuotes = true, -1, true
	heads, err := lines.Read()
	if err != nil {
		return err
	}
	positions := make([]int, len(names))
	for i, n := range names {
		if positions[i] = slices.Index(heads, n); positions[i] < 0 {
			return fmt.Errorf("the CSV file has no column %q", n)
		}
	}
	cells, bad := make([]string, len(names)), 0
	for {
		row, err := lines.Read()
		if err == io.EOF {
			break
		}
		if err != nil || len(row) <= slices.Max(positions) {
			bad++
			continue
		}
		for i, c := range positions {
			cells[i] = row[c]
		}
		f(cells)
	}
	if bad > 0 {
		r.note("%d lines of the file were left out because they are not valid rows", bad)
	}
	return nil
}

// importRows parses the CSV of hey and of oha: a row for each response, with times in seconds. The
// columns are its begin, duration and status.
func importRows(text string, columns ...string) (*tally, error) {
	r := &rows{}
	end := 0.0
	err := r.each(text, columns, func(c []string) {
		elapsed := number(c[1])
		end = max(end, number(c[0])+elapsed)
		r.book(secondsOf(elapsed), r.answered(int(integer(c[2])), 0, 1))
	})
	if err != nil {
		return nil, err
	}
	r.durationNs = secondsOf(end)
	return r.sum(), nil
}

func importHeyRows(text string) (*tally, error) {
	t, err := importRows(text, "offset", "response-time", "status-code")
	if err != nil {
		return nil, err
	}
	t.note("the times of hey have steps of 0.1 ms")
	t.note("the hey output does not contain requests without a response")
	t.note("the hey output does not contain whether the run had a rate (-q)")
	if t.good+t.errors.Status >= heyMost {
		t.note("hey stores only its first %d responses", heyMost)
	}
	return t, nil
}
