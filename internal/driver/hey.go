package driver

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

	"prony/internal/pattern"
	"prony/internal/result"
)

// hey is github.com/rakyll/hey: closed workers; with a rate each worker waits for a ticker of its
// own, which drops ticks while an answer is awaited.
func hey() *tool {
	return &tool{
		name: "hey", get: "apt install hey, or go install github.com/rakyll/hey@latest",
		says: "hey [options...]",
		can: ability{closed: true, open: true, counts: true, renew: true, checks: "exact",
			methods: []string{"GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"}},
		grain: time.Millisecond,
		measures: "closed workers, a rate as a ticker for each that drops ticks; its clock " +
			"starts before it takes a connection",
		start: startHey,
		read:  readHey,
	}
}

// heyTemplate is hey's own way to print anything, used because its summary knows times to 0.1 ms
// only. Its output passes through Printf, so the template must not make percent signs.
const heyTemplate = "prony {{.NumRes}} {{.Total.Seconds}} {{.SizeTotal}}" +
	`{{range $e, $n := .ErrorDist}}
error {{$n}} {{$e}}{{end}}{{range $i, $v := .Lats}}
{{$v}} {{index $.StatusCodes $i}} {{index $.ConnLats $i}}{{end}}`

// heyMost is how many results hey keeps; it counts those after them and looks at none.
const heyMost = 1000000

func startHey(j *job) (command, error) {
	s, r := j.spec, &j.requests[0]
	argv := []string{j.path, "-o", heyTemplate, "-c", strconv.Itoa(s.Connections),
		"-m", r.method, "-t", seconds(int64(s.Timeout)), "-cpus", strconv.Itoa(j.threads),
		"-disable-compression", "-disable-redirects"}
	if s.Requests > 0 {
		argv = append(argv, "-n", strconv.FormatInt(s.Requests, 10))
	} else {
		argv = append(argv, "-z", j.length.String())
	}
	if rate := j.perS(); rate > 0 {
		each := rate / float64(s.Connections)
		argv = append(argv, "-q", strconv.FormatFloat(each, 'g', -1, 64))
	}
	if s.Churn == 1 {
		argv = append(argv, "-disable-keepalive")
	}
	argv = goHeaders(argv, r, "-host", "-T")
	body, err := j.bodyFile(r)
	if err != nil {
		return command{}, err
	}
	if body != "" {
		argv = append(argv, "-D", body)
	}
	return command{argv: append(argv, j.url(r))}, nil
}

// goHeaders appends the headers, two of which have flags of their own.
func goHeaders(argv []string, r *request, host, kind string) []string {
	for _, h := range r.heads {
		switch strings.ToLower(h.name) {
		case "host":
			argv = append(argv, host, h.value.String())
		case "content-type":
			argv = append(argv, kind, h.value.String())
		default:
			argv = append(argv, "-H", h.name+": "+h.value.String())
		}
	}
	return argv
}

// bodyFile writes the body to a file and returns its path; "" when there is none.
func (j *job) bodyFile(r *request) (string, error) {
	body := r.body.String()
	if body == "" {
		return "", nil
	}
	path := filepath.Join(j.dir, "body")
	return path, os.WriteFile(path, []byte(body), 0o600)
}

func readHey(j *job, out *output) (*tally, error) {
	lines := bufio.NewScanner(bytes.NewReader(out.text))
	t := &tally{}
	var total, size, seen int64
	var took float64
	if !lines.Scan() {
		return nil, fmt.Errorf("it printed nothing: %s", out.tail())
	}
	if _, err := fmt.Sscanf(lines.Text(), "prony %d %g %d", &total, &took, &size); err != nil {
		return nil, fmt.Errorf("%q is not its first line: %w", lines.Text(), err)
	}
	t.durationNs, t.bytesIn = secondsOf(took), size
	var good, bad, connect samples
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "error "); ok {
			n, what, _ := strings.Cut(text, " ")
			blame(&t.errors, what, integer(n))
			continue
		}
		f := strings.Fields(lines.Text())
		if len(f) != 3 {
			continue
		}
		seen++
		status := int(integer(f[1]))
		t.answered(status, j.requests[0].status, 1)
		ns := secondsOf(number(f[0]))
		if status == j.requests[0].status {
			good.add(ns, 1)
		} else {
			bad.add(ns, 1)
		}
		if c := secondsOf(number(f[2])); c > 0 {
			connect.add(c, 1)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	// It looks at no more than a million answers; the others are taken for good, and that is said.
	if rest := total - seen - t.errors.Total() + t.errors.Status; seen >= heyMost && rest > 0 {
		t.good += rest
		t.note("it keeps its first %d answers: times and statuses of the last %d are unknown",
			heyMost, rest)
	}
	t.service, t.errored, t.connect = good.dist(), bad.dist(), connect.dist()
	return t, nil
}

// Text of hey.
var (
	heyTotal   = pattern.New(`(?m)^\s*Total:\s+([\d.]+) secs`)
	heyRate    = pattern.New(`(?m)^\s*Requests/sec:\s+([\d.]+)`)
	heyData    = pattern.New(`(?m)^\s*Total data:\s+(\d+) bytes`)
	heyStat    = pattern.New(`(?m)^\s*(Slowest|Fastest|Average):\s+([\d.]+) secs`)
	heyPercent = pattern.New(`(?m)^\s*([\d.]+)%+ in ([\d.]+) secs`)
	heyStatus  = pattern.New(`(?m)^\s*\[(\d{3})\]\s+(\d+) responses`)
	heyError   = pattern.New(`(?m)^\s*\[(\d+)\]\s+(\S.*)$`)
)

// importHey reads hey's summary.
func importHey(text string) (*tally, error) {
	m := heyTotal.FindStringSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("it has no line such as \"Total: 2.0000 secs\"; is it whole?")
	}
	t := &tally{durationNs: secondsOf(number(m[1]))}
	if d := heyData.FindStringSubmatch(text); d != nil {
		t.bytesIn = integer(d[1])
	}
	var seen int64
	for _, s := range heyStatus.FindAllStringSubmatch(text, -1) {
		seen += integer(s[2])
		t.answeredClass(int(integer(s[1])), integer(s[2]))
	}
	if _, failed, ok := strings.Cut(text, "Error distribution:"); ok {
		for _, e := range heyError.FindAllStringSubmatch(failed, -1) {
			blame(&t.errors, e[2], integer(e[1]))
		}
	}
	t.service = heyDist(text, seen)
	if seen >= heyMost {
		if r := heyRate.FindStringSubmatch(text); r != nil {
			all := int64(number(r[1]) * float64(t.durationNs) / 1e9)
			t.note("it keeps its first %d answers; its rate tells of some %d, of which nothing "+
				"more is known, and it divides their sum of times by too few: no mean", seen, all)
			t.service.MeanNs = 0
		}
	}
	t.note("its times are in steps of 0.1 ms")
	t.note("its percentiles are of all answers, also of those with an error status")
	t.note("whether it had a rate (-q) is not in it; if it had, it dropped ticks while it waited")
	return t, nil
}

func heyDist(text string, n int64) result.Dist {
	d := result.Dist{Count: n}
	for _, s := range heyStat.FindAllStringSubmatch(text, -1) {
		ns := secondsOf(number(s[2]))
		switch s[1] {
		case "Slowest":
			d.MaxNs = ns
		case "Fastest":
			d.MinNs = ns
		default:
			d.MeanNs = float64(ns)
		}
	}
	for _, p := range heyPercent.FindAllStringSubmatch(text, -1) {
		if to := percentile(&d, number(p[1])); to != nil {
			*to = secondsOf(number(p[2]))
		}
	}
	return d
}

// table is a CSV file with a first line of names.
type table struct {
	names []string
	rows  *csv.Reader
}

func newTable(text string) (*table, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.ReuseRecord, r.FieldsPerRecord, r.LazyQuotes = true, -1, true
	first, err := r.Read()
	if err != nil {
		return nil, err
	}
	return &table{slices.Clone(first), r}, nil
}

// each calls f with the named columns of every row; rows that lack one are counted as bad.
func (t *table) each(names []string, f func(cells []string)) (bad int64, err error) {
	at := make([]int, len(names))
	for i, n := range names {
		if at[i] = slices.Index(t.names, n); at[i] < 0 {
			return 0, fmt.Errorf("it has no column %q", n)
		}
	}
	cells := make([]string, len(names))
	for {
		row, err := t.rows.Read()
		if err == io.EOF {
			return bad, nil
		}
		if err != nil || len(row) <= slices.Max(at) {
			bad++
			continue
		}
		for i, c := range at {
			cells[i] = row[c]
		}
		f(cells)
	}
}

// importRows reads the CSV of hey and of oha: a row for each answer, with times in seconds. The
// columns are named in the order when it began, how long it took, its status.
func importRows(text string, columns ...string) (*tally, error) {
	rows, err := newTable(text)
	if err != nil {
		return nil, err
	}
	t := &tally{}
	var good, bad samples
	end := 0.0
	broken, err := rows.each(columns, func(c []string) {
		took, status := number(c[1]), int(integer(c[2]))
		end = max(end, number(c[0])+took)
		t.answeredClass(status, 1)
		if status >= 200 && status < 400 {
			good.add(secondsOf(took), 1)
		} else {
			bad.add(secondsOf(took), 1)
		}
	})
	if err != nil {
		return nil, err
	}
	t.durationNs = secondsOf(end)
	t.service, t.errored = good.dist(), bad.dist()
	if broken > 0 {
		t.note("%d of its lines are no rows and were left out", broken)
	}
	return t, nil
}

func importHeyRows(text string) (*tally, error) {
	t, err := importRows(text, "offset", "response-time", "status-code")
	if err != nil {
		return nil, err
	}
	t.note("its times are in steps of 0.1 ms")
	t.note("requests without an answer are not in it")
	t.note("whether it had a rate (-q) is not in it")
	if t.good+t.errors.Status >= heyMost {
		t.note("it keeps its first %d answers", heyMost)
	}
	return t, nil
}
