package generator

import (
	_ "embed"
	"encoding/json"
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
			t.note("wrk counts every status up to 399 as good, not only %d", r.Status)
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
		t.note("no percentile includes responses later than the timeout of %v", j.spec.Timeout)
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
		t.note("%s", backfilled)
		return t, nil
	}
	t.service = real.dist()
	t.note("the percentiles exclude samples that wrk invents (backfill); with those samples, wrk "+
		"prints p99 %s",
		time.Duration(reply.P99*1e3))
	return t, nil
}

const backfilled = "the percentiles are synthetic: wrk invents samples below each slow one " +
	"(backfill)"

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
		t.note("wrk2 counted %d timeouts of connections that may have been idle", n)
	}
	t.good = int64(reply.Requests) - t.errors.Status
	t.response = reply.dist(int64(reply.Samples))
	if _, text, ok := strings.Cut(string(out.text), "Uncorrected Latency"); ok {
		t.service = spectrum(text)
	}
	t.note("the counts are of the whole run, but the latency excludes the first %v", calibration(j))
	return t, nil
}

// Patterns of the text of wrk and wrk2.
var (
	wrkHead     = lazyregexp.New(`(\d+) threads and (\d+) connections`)
	wrkRequests = lazyregexp.New(
		`(?m)^\s*(\d+) requests in ([\d.]+\w+), ([\d.]+)([KMGT]?)B read`)
	wrkSockets = lazyregexp.New(
		`Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)`)
	wrkStatus   = lazyregexp.New(`Non-2xx or 3xx responses: (\d+)`)
	wrkLatency  = lazyregexp.New(`(?m)^\s*Latency\s+([\d.]+\w+)\s+([\d.]+\w+)\s+([\d.]+\w+)`)
	wrkPercent  = lazyregexp.New(`(?m)^\s*([\d.]+)%\s+([\d.]+\w+)\s*$`)
	spectrumRow = lazyregexp.New(`(?m)^\s*([\d.]+)\s+([01]\.\d+)\s+(\d+)\s+[\d.a-z]+\s*$`)
	spectrumSum = lazyregexp.New(`#\[Mean\s*=\s*([\d.]+)`)
	spectrumMax = lazyregexp.New(`#\[Max\s*=\s*([\d.]+), Total count\s*=\s*(\d+)`)
)

// wrkCounts parses the text that wrk and wrk2 have in common, and also returns the number of
// requests.
func wrkCounts(text string) (*tally, int64, error) {
	m := wrkRequests.FindStringSubmatch(text)
	if m == nil {
		return nil, 0, fmt.Errorf(`the output has no line such as "1000 requests in 2.00s, ` +
			`1.00MB read"; check that it is complete`)
	}
	t := &tally{durationNs: nanoseconds(m[2]), bytesIn: int64(number(m[3]) * binary[m[4]])}
	if h := wrkHead.FindStringSubmatch(text); h != nil {
		t.threads, t.conns = int(integer(h[1])), int(integer(h[2]))
	}
	if e := wrkSockets.FindStringSubmatch(text); e != nil {
		t.errors = record.Errors{Connect: integer(e[1]), Read: integer(e[2]), Write: integer(e[3]),
			Timeout: integer(e[4])}
	}
	if e := wrkStatus.FindStringSubmatch(text); e != nil {
		t.errors.Status = integer(e[1])
		example(&t.errors, "responses had a status above 399")
	}
	return t, integer(m[1]), nil
}

func importWrk(text string) (*tally, error) {
	t, requests, err := wrkCounts(text)
	if err != nil {
		return nil, err
	}
	t.model = record.Closed
	t.good = max(requests-t.errors.Status-t.errors.Timeout, 0)
	t.service = printed(text, requests-t.errors.Timeout)
	t.note("%s", backfilled)
	if t.errors.Timeout > 0 {
		t.note("no percentile includes responses later than wrk's timeout")
	}
	return t, nil
}

func importWrk2(text string) (*tally, error) {
	t, requests, err := wrkCounts(text)
	if err != nil {
		return nil, err
	}
	t.model, t.errors.Timeout = record.Open, 0
	t.good = max(requests-t.errors.Status, 0)
	corrected, uncorrected, ok := strings.Cut(text, "Uncorrected Latency")
	t.response = spectrum(corrected)
	if t.response.Count == 0 {
		t.response = printed(corrected, requests)
	}
	if ok {
		t.service = spectrum(uncorrected)
	}
	t.note("the latency excludes the first 10 s and 5 ms for each connection, but the counts " +
		"include them")
	t.note("the wrk2 output does not contain the requested rate")
	return t, nil
}

// printed parses a distribution in the text: mean, maximum, and the percentiles of --latency.
func printed(text string, n int64) record.Dist {
	d := record.Dist{Count: max(n, 0)}
	if m := wrkLatency.FindStringSubmatch(text); m != nil {
		d.MeanNs, d.MaxNs = float64(nanoseconds(m[1])), nanoseconds(m[3])
	}
	percents(&d, text)
	return d
}

func percents(d *record.Dist, text string) {
	for _, m := range wrkPercent.FindAllStringSubmatch(text, -1) {
		put(d, m[1], nanoseconds(m[2]))
	}
}

// spectrum parses HdrHistogram's table of percentiles, in milliseconds, and its summary lines.
func spectrum(text string) record.Dist {
	m := spectrumMax.FindStringSubmatch(text)
	if m == nil {
		return record.Dist{}
	}
	d := record.Dist{Count: integer(m[2]), MaxNs: millis(m[1])}
	if s := spectrumSum.FindStringSubmatch(text); s != nil {
		d.MeanNs = number(s[1]) * 1e6
	}
	percents(&d, text)
	if rows := spectrumRow.FindAllStringSubmatch(text, -1); len(rows) > 0 {
		// The row of the 0th percentile has the smallest value.
		d.MinNs = millis(rows[0][1])
	}
	return d
}
