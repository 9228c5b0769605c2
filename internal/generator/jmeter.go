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
		t.note(NoteJMeterHost)
	}
	if span := time.Duration(t.durationNs); j.spec.Model == record.Open && span < j.length {
		// Requests that were due during the start are sent at once, which its log does not show.
		if span < j.length*9/10 {
			t.note(NoteJMeterBurst, j.length, span)
		}
		t.durationNs = int64(j.length)
	}
	return t, nil
}
