package generator

import (
	"bytes"
	_ "embed"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"
	"time"

	"prony.example/internal/base/lazyregexp"
	"prony.example/load/pace"
	"prony.example/record"
)

// jmeterPlan is the template of JMeter's test plan.
//
//go:embed jmeter.jmx
var jmeterPlan string

// jmeter is Apache JMeter 5.5 or later: a thread for each user, or for each arrival of an open
// load.
var jmeter = &tool{
	name: "jmeter", get: "download it from jmeter.apache.org, and put its bin on the PATH",
	request: []string{"--version"},
	version: lazyregexp.New(`(?m)(\d+\.\d+(?:\.\d+)?)\s*$`), text: "Apache",
	can: ability{closed: true, open: true, poisson: true, keys: true, renew: true,
		checks: "exact"},
	grain: time.Second,
	measures: "a thread for each user or arrival; time counts from when the thread takes a " +
		"connection, in whole milliseconds",
	start: startJMeter,
	read:  readJMeter,
}

const jmeterLog = "results.jtl"

// jmeterVars are the values of the template.
type jmeterVars struct {
	Schedule, Seed, Seconds, Address, Port, Path, Method, Body string
	Threads, TimeoutMs                                         int
	KeepAlive                                                  bool
	Headers                                                    []struct{ Name, Value string }
}

func startJMeter(j *job) (command, error) {
	s, r := j.spec, &j.requests[0]
	keys := fmt.Sprintf("${__Random(%d,%d)}", s.Scenario.KeyLo, s.Scenario.KeyHi)
	fill := func(t texts) string {
		// JMeter evaluates functions and escapes only in texts with "${".
		if t.fixed() && !strings.Contains(t[0], "${") {
			return escape(t[0])
		}
		var out []string
		for _, part := range t {
			out = append(out, jmeterMask.Replace(part))
		}
		return escape(strings.Join(out, keys))
	}
	v := jmeterVars{
		Seed: strconv.FormatUint(s.Seed%(1<<31), 10), Seconds: seconds(int64(j.length)),
		Address: s.Address.Addr().String(), Port: strconv.Itoa(int(s.Address.Port())),
		Path: fill(r.Path), Method: escape(r.Method), Body: fill(r.Body),
		Threads: s.Connections, TimeoutMs: int(s.Timeout.Milliseconds()), KeepAlive: s.Churn == 0,
	}
	if s.Model == record.Open {
		how := map[string]string{pace.Poisson: "random_arrivals", pace.Constant: "even_arrivals"}
		rate := strconv.FormatFloat(j.perS(), 'f', -1, 64)
		v.Schedule = fmt.Sprintf("rate(%s/s) %s(%s s)", rate, how[s.Schedule.Arrivals], v.Seconds)
	}
	for _, h := range r.Headers {
		v.Headers = append(v.Headers, struct{ Name, Value string }{escape(h.Name), fill(h.Value)})
	}
	var plan bytes.Buffer
	if err := template.Must(template.New("").Parse(jmeterPlan)).Execute(&plan, v); err != nil {
		return command{}, err
	}
	file := filepath.Join(j.dir, "plan.jmx")
	if err := os.WriteFile(file, plan.Bytes(), 0o600); err != nil {
		return command{}, err
	}
	const save = "-Jjmeter.save.saveservice."
	return command{argv: []string{j.path, "-n", "-t", file, "-l", filepath.Join(j.dir, jmeterLog),
		"-j", filepath.Join(j.dir, "jmeter.log"), save + "output_format=csv",
		save + "print_field_names=true", save + "timestamp_format=ms", save + "connect_time=true",
		save + "bytes=true", save + "successful=true", save + "response_code=true",
		save + "default_delimiter=,", "-Jsummariser.name=",
		// After an open load, JMeter's own threads may keep it running forever.
		"-Jjmeterengine.force.system.exit=true"}}, nil
}

var jmeterMask = strings.NewReplacer(`\`, `\\`, `$`, `\$`, `,`, `\,`)

func escape(s string) string {
	var b strings.Builder
	// Writing to memory cannot fail.
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

func readJMeter(j *job, _ *output) (*tally, error) {
	b, err := os.ReadFile(filepath.Join(j.dir, jmeterLog))
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(j.dir, "jmeter.log")) // the error below is sufficient
		end := &output{text: log}
		return nil, fmt.Errorf("JMeter wrote no log of samples: %w; end of its output: "+
			"%s", err, end.tail())
	}
	t, err := jmeterRows(string(b), j.requests[0].Status)
	if err != nil {
		return nil, err
	}
	if j.spec.Host != "" && !strings.Contains(j.spec.Host, ":") {
		t.note("JMeter sends the Host header field with the port appended")
	}
	if span := time.Duration(t.durationNs); j.spec.Model == record.Open && span < j.length {
		// Requests that were due during the start are sent at once, which its log does not show.
		if span < j.length*9/10 {
			t.note("JMeter sent the requests that were due in %v within %v", j.length, span)
		}
		t.durationNs = int64(j.length)
	}
	return t, nil
}

// jmeterRows parses a log with a row for each sample (JTL). A code that is not a number is an error
// message.
func jmeterRows(text string, want int) (*tally, error) {
	r := &rows{unit: 1e6}
	names := []string{"timeStamp", "elapsed", "responseCode"}
	err := r.each(text, names, func(c []string) {
		status, err := strconv.Atoi(c[2])
		good := false
		if err != nil {
			blame(&r.errors, c[2], 1)
		} else {
			good = r.answered(status, want, 1)
		}
		r.add(integer(c[0]), integer(c[1]), good)
	})
	if err != nil {
		return nil, fmt.Errorf("%w; save the log with "+
			"-Jjmeter.save.saveservice.output_format=csv and print_field_names=true", err)
	}
	if r.ok.n > 0 && r.ok.least < 1 {
		r.note("the times are in whole milliseconds, so responses in less than 1 ms have no time")
	}
	return r.sum(), nil
}

func importJTL(text string) (*tally, error) {
	t, err := jmeterRows(text, 0)
	if err != nil {
		return nil, err
	}
	t.note("the JMeter output does not contain whether its threads were closed users or open " +
		"arrivals")
	t.note("the times of JMeter are in whole milliseconds")
	return t, nil
}

// jmeterLine matches a sum of the summariser; sums have =, parts have +.
var jmeterLine = lazyregexp.New(`summary =\s+(\d+) in (\S+) =\s+([\d.]+)/s Avg:\s+(\d+) ` +
	`Min:\s+(\d+) Max:\s+(\d+) Err:\s+(\d+)`)

// importJMeter parses the last sum of JMeter's summariser.
func importJMeter(text string) (*tally, error) {
	all := jmeterLine.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return nil, fmt.Errorf(`the JMeter output has no line such as "summary = 1000 in ` +
			`00:00:02 = 500.0/s …"`)
	}
	m := all[len(all)-1]
	n := integer(m[1])
	t := &tally{}
	if rate := number(m[3]); rate > 0 {
		t.durationNs = secondsOf(float64(n) / rate)
	}
	t.errors.Status = min(integer(m[7]), n)
	t.good = n - t.errors.Status
	// More milliseconds than in a century are not a duration.
	ms := func(s string) int64 { return scaled(float64(integer(s)), 1e6) }
	t.service = record.Dist{Count: n, MeanNs: float64(ms(m[4])), MinNs: ms(m[5]), MaxNs: ms(m[6])}
	if t.errors.Status > 0 {
		example(&t.errors, "Err: %d", t.errors.Status)
		t.note("all errors count as status errors, because the JMeter summary does not contain " +
			"their kinds")
	}
	t.note("the JMeter summary has no percentiles; save the log (-l) and import the log")
	t.note("the times are in whole milliseconds and of all samples, including failed ones")
	t.note("the JMeter output does not contain whether its threads were closed users or open " +
		"arrivals")
	return t, nil
}
