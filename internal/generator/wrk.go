package generator

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"prony.example/internal/base/lazyregexp"
	"prony.example/record"
)

// wrkScript is the constant part of the Lua script.
//
//go:embed wrk.lua
var wrkScript string

var wrkVersion = lazyregexp.New(`wrk (?:\w+/)?(\d+(?:\.\d+)+)`)

// wrk is github.com/wg/wrk: a closed load with one histogram in microseconds, to which it adds
// synthetic samples before it prints it (stats_correct in its stats.c). The script reads that
// histogram, and restore removes the synthetic samples.
var wrk = &tool{
	name: "wrk", get: "apt install wrk, brew install wrk, or build github.com/wg/wrk",
	request: []string{"-v"}, version: wrkVersion, text: "wrk", alternative: "--rate",
	can:   ability{closed: true, keys: true, mix: true, checks: "class", waits: true},
	grain: time.Second,
	measures: "closed; time counts from when wrk writes the request, by gettimeofday, in steps " +
		"of 1 µs",
	start: startWrk,
	read:  readWrk,
}

// wrk2 is github.com/giltene/wrk2: a rate, with one schedule per connection.
var wrk2 = &tool{
	name:    "wrk2",
	get:     "build github.com/giltene/wrk2 with make, and put its wrk on the PATH as wrk2",
	request: []string{"-v"}, version: wrkVersion, text: "--rate",
	can: ability{
		open:     true,
		complete: true,
		keys:     true,
		mix:      true,
		checks:   "class",
		waits:    true,
	},
	grain:    time.Second,
	excluded: calibration,
	measures: "constant rate, with a separate schedule for each connection and timers in whole " +
		"milliseconds; time counts from when a request was due",
	start: startWrk,
	read:  readWrk2,
}

// calibration returns the time at the start in which wrk2 records no latency (CALIBRATE_DELAY_MS in
// its wrk.c, and 5 ms for each connection of a thread).
func calibration(j *job) time.Duration {
	return 10*time.Second + time.Duration(j.spec.Connections/j.threads)*5*time.Millisecond
}

// wrkReport is the file that the script writes.
const wrkReport = "report.json"

func startWrk(j *job) (command, error) {
	s, rated := j.spec, j.spec.Model == record.Open
	script := filepath.Join(j.dir, "load.lua")
	text := wrkSettings(j, !rated) + wrkScript
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		return command{}, err
	}
	argv := []string{j.path, "-t", strconv.Itoa(j.threads), "-c", strconv.Itoa(s.Connections),
		"-d", seconds(int64(j.length)) + "s", "--timeout", seconds(int64(s.Timeout)) + "s",
		"-s", script, "--latency"}
	if rated {
		argv = append(argv, "-U", "-R", strconv.FormatFloat(j.perS(), 'f', -1, 64))
	}
	return command{argv: append(argv, "http://"+s.Address.String()+"/")}, nil
}

// wrkSettings returns the script's first lines.
func wrkSettings(j *job, raw bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "local seed, keyLo, keyHi, raw = %d, %d, %d, %v\nlocal out = %s\n",
		j.spec.Seed%(1<<31), j.spec.Scenario.KeyLo, j.spec.Scenario.KeyHi, raw,
		lua(filepath.Join(j.dir, wrkReport)))
	b.WriteString("local requests = {\n")
	for _, r := range j.requests {
		fmt.Fprintf(&b, "  { method = %s, path = %s, body = %s, weight = %d, fixed = %v, "+
			"headers = {", lua(r.Method), luaTexts(r.Path), luaTexts(r.Body), r.Weight, r.fixed())
		for _, h := range r.Headers {
			fmt.Fprintf(&b, " { %s, %s },", lua(h.Name), luaTexts(h.Value))
		}
		b.WriteString(" } },\n")
	}
	b.WriteString("}\n")
	return b.String()
}

// lua returns a string literal, in which all bytes but letters, digits and a few signs are decimal
// escapes.
func lua(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9',
			strings.IndexByte("/?=&.,:;-_ +", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\%03d`, c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func luaTexts(t texts) string {
	out := make([]string, len(t))
	for i, s := range t {
		out[i] = lua(s)
	}
	return "{ " + strings.Join(out, ", ") + " }"
}

// wrkSaid is the script's report. Times are microseconds.
type wrkSaid struct {
	Requests, US, Bytes, Samples          float64
	Connect, Read, Write, Status, Timeout float64
	Min, Mean, Max, P50, P90, P99, P999   float64
	Counts                                [][2]int64
}

func readReport(j *job, out *output) (*wrkSaid, *tally, error) {
	b, err := os.ReadFile(filepath.Join(j.dir, wrkReport))
	if err != nil {
		return nil, nil, fmt.Errorf("the wrk script wrote no report: %w; end of its output: "+
			"%s", err, out.tail())
	}
	reply := &wrkSaid{}
	if err := json.Unmarshal(b, reply); err != nil {
		return nil, nil, fmt.Errorf("read the report of the wrk script: %w", err)
	}
	t := &tally{
		durationNs: int64(reply.US * 1e3), bytesIn: int64(reply.Bytes),
		// wrk divides the connections among its threads and drops the remainder.
		conns: j.spec.Connections / j.threads * j.threads,
		errors: record.Errors{
			Connect: int64(reply.Connect), Read: int64(reply.Read), Write: int64(reply.Write),
			Status: int64(reply.Status), Timeout: int64(reply.Timeout),
		},
	}
	if t.errors.Status > 0 {
		example(&t.errors, "responses had a status above 399")
	}
	for _, r := range j.requests {
		if r.Status != http.StatusOK {
			t.note(NoteWrkStatus, r.Status)
		}
	}
	return reply, t, nil
}

// readWrk reads wrk's numbers. wrk counts late responses as requests, but not in percentiles.
func readWrk(j *job, out *output) (*tally, error) {
	reply, t, err := readReport(j, out)
	if err != nil {
		return nil, err
	}
	t.good = max(int64(reply.Requests)-t.errors.Status-t.errors.Timeout, 0)
	if t.errors.Timeout > 0 {
		t.note(NoteWrkTimeout, j.spec.Timeout)
	}
	var expected int64
	if perItem := int64(reply.Requests) / int64(j.spec.Connections); perItem > 0 {
		expected = int64(reply.US) / perItem
	}
	// Each response in time is one sample, so the right number of samples confirms the result.
	real, ok := restore(reply.Counts, expected, int64(reply.Requests)-t.errors.Timeout)
	if !ok {
		t.service = reply.dist(int64(reply.Samples))
		t.service.Count = t.good
		t.note(NoteWrkBackfilled)
		return t, nil
	}
	t.service = real.dist()
	t.note(NoteWrkRestored, time.Duration(reply.P99*1e3))
	return t, nil
}

func (w *wrkSaid) dist(n int64) record.Dist {
	ns := func(us float64) int64 { return int64(math.Round(us * 1e3)) }
	return record.Dist{Count: n, MinNs: ns(w.Min), MeanNs: w.Mean * 1e3, MaxNs: ns(w.Max),
		P50Ns: ns(w.P50), P90Ns: ns(w.P90), P99Ns: ns(w.P99), P999Ns: ns(w.P999)}
}

// restore undoes wrk's stats_correct on counts by microsecond, in ascending order: for each time n
// from twice the expected interval on, wrk adds the count of n at n - expected, n - 2·expected and
// so on, as long as that is above expected. wrk goes upwards and adds below, so each count that it
// copies is still an original one. Going downwards, each count is original again when all counts
// above have been subtracted. restore reports whether the result has the wanted number of samples.
func restore(counts [][2]int64, expected, want int64) (*samples, bool) {
	remaining := make(map[int64]int64, len(counts))
	for _, c := range counts {
		remaining[c[0]] += c[1]
	}
	for _, us := range slices.Backward(slices.Sorted(maps.Keys(remaining))) {
		n := remaining[us]
		if n < 0 {
			return nil, false
		}
		if expected < 1 || n == 0 {
			continue
		}
		for m := us - expected; m > expected; m -= expected {
			if remaining[m] -= n; remaining[m] < 0 {
				return nil, false
			}
		}
	}
	real := &samples{}
	for us, n := range remaining {
		if n > 0 {
			real.add(us*1e3, n)
		}
	}
	return real, real.n == want && want > 0
}

// readWrk2 reads the corrected times from the script and the uncorrected ones from the text.
func readWrk2(j *job, out *output) (*tally, error) {
	reply, t, err := readReport(j, out)
	if err != nil {
		return nil, err
	}
	// wrk2 also counts timeouts of idle connections, so they say nothing about responses.
	if n := t.errors.Timeout; n > 0 {
		t.errors.Timeout = 0
		t.note(NoteWrk2Idle, n)
	}
	t.good = int64(reply.Requests) - t.errors.Status
	t.response = reply.dist(int64(reply.Samples))
	if _, uncorrected := newScan(string(out.text)).cut("Uncorrected Latency"); uncorrected != nil {
		t.service = uncorrected.spectrum()
		err = *uncorrected.err
	}
	t.note(NoteWrk2Calibration, calibration(j))
	return t, err
}

// Patterns of the text of wrk and wrk2.
var (
	wrkHead     = lazyregexp.New(`(\d+) threads and (\d+) connections`)
	wrkRequests = lazyregexp.New(
		`(?m)^\s*(\d+) requests in ([\d.]+\w+), ([\d.]+)([KMGT]?)B read`)
	wrkSockets = lazyregexp.New(
		`Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)`)
	wrkStatus   = lazyregexp.New(`Non-2xx or 3xx responses: (\d+)`)
	wrkLatency  = lazyregexp.New(`(?m)^\s*Latency\s+(\S+)\s+(\S+)\s+(\S+)\s+\S+%\s*$`)
	wrkPercent  = lazyregexp.New(`(?m)^\s*([\d.]+)%\s+([\d.]+\w+)\s*$`)
	spectrumRow = lazyregexp.New(`(?m)^\s*([\d.]+)\s+([01]\.\d+)\s+(\d+)\s+[\d.a-z]+\s*$`)
	spectrumSum = lazyregexp.New(`#\[Mean\s*=\s*([\d.]+)`)
	spectrumMax = lazyregexp.New(`#\[Max\s*=\s*([\d.]+), Total count\s*=\s*(\d+)`)
)

// wrkLabels are the lines that the patterns must match.
var wrkLabels = labels(
	`threads and\b`, `^\s*\d+ threads and \d+ connections`,
	`^\s*Latency\s+[^D\s]`, `^\s*Latency(\s+(-?nan\w*|[\d.]+\w+)){3}\s+(-?nan|[\d.]+)%$`,
	`^\s*[\d.,]+%\s`, `^\s*[\d.]+%\s+(-?nan\w*|[\d.]+\w+)$`,
	`requests in\b`, `^\s*\d+ requests in [\d.]+\w+, [\d.]+[KMGT]?B read$`,
	`^\s*Socket errors:`, `: connect \d+, read \d+, write \d+, timeout \d+$`,
	`Non-2xx`, `^\s*Non-2xx or 3xx responses: \d+$`,
	`^Requests/sec:`, `:\s+[\d.]+$`,
	`^#\[Mean`, `=\s*[\d.]+,`,
	`^#\[Max`, `=\s*[\d.]+, Total count\s*=\s*\d+`)

// wrkCounts parses the text that wrk and wrk2 have in common, and also returns the number of
// requests. Lines of errors come after that number, and before the rate.
func wrkCounts(s *scan) (*tally, int64, error) {
	s.check(wrkLabels)
	s.once(wrkRequests)
	m := s.find(wrkRequests)
	if m == nil && *s.err == nil {
		return nil, 0, fmt.Errorf(`the output has no line such as "1000 requests in 2.00s, ` +
			`1.00MB read"; check that it is complete`)
	}
	s.ends("Requests/sec:")
	if *s.err != nil {
		return nil, 0, *s.err
	}
	t := &tally{durationNs: m.nanoseconds(2), bytesIn: m.bytes(3, 4)}
	if h := s.find(wrkHead); h != nil {
		t.threads, t.conns = int(h.count(1)), int(h.count(2))
	}
	if e := s.find(wrkSockets); e != nil {
		t.errors = record.Errors{Connect: e.count(1), Read: e.count(2), Write: e.count(3),
			Timeout: e.count(4)}
	}
	if e := s.find(wrkStatus); e != nil {
		t.errors.Status = e.count(1)
		example(&t.errors, "responses had a status above 399")
	}
	return t, m.count(1), *s.err
}

// bytes reads a size with a unit in powers of 1024.
func (m *match) bytes(number, unit int) int64 {
	n := m.number(number) * binary[m.group(unit)]
	if n > countMax {
		m.fail(number, errors.New("the number is too large for a count"))
		return 0
	}
	return int64(n)
}

func importWrk(text string) (*tally, error) {
	s := newScan(text)
	t, requests, err := wrkCounts(s)
	if err != nil {
		return nil, err
	}
	t.model = record.Closed
	t.good = max(requests-t.errors.Status-t.errors.Timeout, 0)
	t.service = s.printed(requests - t.errors.Timeout)
	t.note(NoteWrkBackfilled)
	if t.errors.Timeout > 0 {
		t.note(NoteWrkLate)
	}
	return t, *s.err
}

func importWrk2(text string) (*tally, error) {
	s := newScan(text)
	t, requests, err := wrkCounts(s)
	if err != nil {
		return nil, err
	}
	t.model, t.errors.Timeout = record.Open, 0
	t.good = max(requests-t.errors.Status, 0)
	corrected, uncorrected := s.cut("Uncorrected Latency")
	t.response = corrected.spectrum()
	if t.response.Count == 0 {
		t.response = corrected.printed(requests)
	}
	if uncorrected != nil {
		t.service = uncorrected.spectrum()
	}
	t.note(NoteWrk2Excluded)
	t.note(NoteWrk2Rate)
	return t, *s.err
}

// printed parses a distribution in the text: mean, maximum, and the percentiles of --latency.
func (s *scan) printed(n int64) record.Dist {
	d := record.Dist{Count: max(n, 0)}
	if m := s.find(wrkLatency); m != nil {
		d.MeanNs, d.MaxNs = float64(m.nanoseconds(1)), m.nanoseconds(3)
	}
	s.percents(&d)
	return d
}

func (s *scan) percents(d *record.Dist) {
	for _, m := range s.all(wrkPercent) {
		put(d, m.group(1), m.nanoseconds(2))
	}
}

// spectrum parses HdrHistogram's table of percentiles, in milliseconds, and its summary lines.
func (s *scan) spectrum() record.Dist {
	m := s.find(spectrumMax)
	if m == nil {
		return record.Dist{}
	}
	d := record.Dist{Count: m.count(2), MaxNs: m.span(1, 1e6)}
	if mean := s.find(spectrumSum); mean != nil {
		d.MeanNs = mean.number(1) * 1e6
	}
	s.percents(&d)
	if row := s.find(spectrumRow); row != nil {
		// The row of the 0th percentile has the smallest value.
		d.MinNs = row.span(1, 1e6)
	}
	return d
}
