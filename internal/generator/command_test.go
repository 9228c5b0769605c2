package generator

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"prony.example/load"
	"prony.example/load/pace"
	"prony.example/record"
)

// commandOf returns a tool's command line for a load, with DIR for the run's folder.
func commandOf(t *testing.T, name string, s load.Spec) (string, *job) {
	t.Helper()
	tool := toolOf(t, name)
	if err := tool.cannot(&s); err != nil {
		t.Fatal(err)
	}
	j := jobFor(t, tool, s)
	c, err := tool.start(j)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Join(append(slices.Clone(c.env), c.argv...), " ")
	return strings.ReplaceAll(line, j.dir, "DIR"), j
}

func perS(rate float64) func(*load.Spec) {
	return func(s *load.Spec) { *s = rated(*s, rate) }
}

// TestCommands uses windows of 1.5 s and timeouts of 2.5 s, which tools with integer seconds round
// up.
func TestCommands(t *testing.T) {
	check := func(name string, change func(*load.Spec), want ...string) {
		t.Helper()
		s := plain()
		if change != nil {
			change(&s)
		}
		got, _ := commandOf(t, name, s)
		for _, w := range want {
			if !strings.Contains(got+" ", w+" ") {
				t.Errorf("%s: %s\nlacks %s", name, got, w)
			}
		}
	}
	body := func(s *load.Spec) {
		s.Scenario.Requests[0] = load.Request{Method: "POST", Path: "/", Body: "x", Type: "a/b",
			Headers: []load.Header{{Name: "X", Value: "y z"}}}
		s.Host = "prony.test"
	}
	const wrkLine = "-t 2 -c 8 -d 2s --timeout 3s -s DIR/load.lua --latency"
	check("wrk", nil, "wrk "+wrkLine+" http://127.0.0.1:8080/")
	check("wrk2", perS(1000), "wrk2 "+wrkLine+" -U -R 1000 http://127.0.0.1:8080/")
	check("hey", nil, "-c 8 -m GET -t 3 -cpus 2 -disable-compression -disable-redirects -z 1.5s "+
		"http://127.0.0.1:8080/a?b=1")
	check("hey", perS(20), "-q 2.5") // 20/s over 8 workers
	check("hey", func(s *load.Spec) { s.Requests, s.Churn = 77, 1 }, "-n 77", "-disable-keepalive")
	check("hey", body, "-m POST", "-H X: y z", "-T a/b", "-host prony.test", "-D DIR/body")
	check("h2load", nil, "h2load --h1 -c 8 -t 2 --log-file=DIR/requests.tsv -D 1500ms -N 3 "+
		"http://127.0.0.1:8080/a?b=1")
	check("h2load", perS(20), "--rps=2.5")
	check("h2load", body, "-d DIR/body", "-H X: y z", "-H :authority: prony.test")
	check("h2load", func(s *load.Spec) { body(s); s.Scenario.Requests[0].Method = "PUT" },
		"-H :method: PUT")
	check("h2load", func(s *load.Spec) { s.Requests = 5 }, "-n 5")
	check("k6", nil, "GOMAXPROCS=2 K6_NO_USAGE_REPORT=true K6_AUTO_EXTENSION_RESOLUTION=false k6 "+
		"run --quiet --no-usage-report --address  --no-color DIR/load.js")
	check("jmeter", nil, "jmeter -n -t DIR/plan.jmx -l DIR/results.jtl")
}

// TestK6Scenario checks the file with settings that k6 has no flags for.
func TestK6Scenario(t *testing.T) {
	check := func(change func(*load.Spec), want ...string) {
		t.Helper()
		s := plain()
		change(&s)
		_, j := commandOf(t, "k6", s)
		b, err := os.ReadFile(filepath.Join(j.dir, "spec.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(string(b), w) {
				t.Errorf("%s\nlacks %s", b, w)
			}
		}
	}
	check(func(*load.Spec) {}, `"executor":"constant-vus"`, `"vus":8`, `"duration":"1.5s"`,
		`"gracefulStop":"1s"`, `"timeoutMs":2500`, `"path":["/a?b=1"]`, `"noConnectionReuse":false`)
	// 0.25/s are 250 in 1000 s.
	check(perS(0.25), `"executor":"constant-arrival-rate"`, `"rate":250`, `"timeUnit":"1000s"`,
		`"preAllocatedVUs":8`, `"maxVUs":8`)
	check(func(s *load.Spec) { s.Requests = 5 }, `"executor":"shared-iterations"`, `"iterations":5`)
	check(func(s *load.Spec) {
		s.Users = &load.Users{Number: pace.Flat(3),
			Think: load.Think{Kind: "uniform", Lo: time.Second, Hi: 2 * time.Second}}
	}, `"vus":3`, `"think":{"hi":2,"kind":"uniform","lo":1}`)
	check(func(s *load.Spec) {
		s.Users = &load.Users{Number: pace.Profile{Pieces: []pace.Piece{{ForNs: 1e9, To: 9}}}}
	}, `"executor":"ramping-vus"`, `"startVUs":0`,
		`"stages":[{"duration":"1s","target":9},{"duration":"500ms","target":9}]`)
	check(func(s *load.Spec) {
		perS(1)(s)
		s.Schedule.Rate = pace.Profile{Pieces: []pace.Piece{{ForNs: 3e9, From: 1, To: 3}}}
	}, `"executor":"ramping-arrival-rate"`, `"startRate":1000`,
		`"stages":[{"duration":"1.5s","target":2000}]`) // half of the ramp
}

func TestStages(t *testing.T) {
	const s = int64(time.Second)
	check := func(p pace.Profile, length time.Duration, first int64, want ...k6Stage) {
		t.Helper()
		at, got, err := stages(p, length, 1)
		if err != nil || at != first || !reflect.DeepEqual(got, want) {
			t.Errorf("stages of %v are %d %v, %v, want %d %v", p, at, got, err, first, want)
		}
	}
	up := pace.Piece{ForNs: 2 * s, From: 0, To: 10}
	high := pace.Piece{ForNs: s, From: 30, To: 30}
	// A jump is a stage of length 0.
	check(pace.Profile{Pieces: []pace.Piece{up, high}}, 3*time.Second, 0,
		k6Stage{"2s", 10}, k6Stage{"0s", 30}, k6Stage{"1s", 30})
	// The last value continues.
	check(pace.Profile{Pieces: []pace.Piece{up}}, 5*time.Second, 0,
		k6Stage{"2s", 10}, k6Stage{"3s", 10})
	check(pace.Profile{Pieces: []pace.Piece{up, {From: 4, To: 4}}}, 3*time.Second, 0,
		k6Stage{"2s", 10}, k6Stage{"0s", 4}, k6Stage{"1s", 4})
	// The profile repeats, and the window cuts it.
	check(pace.Profile{Pieces: []pace.Piece{up}, Cycles: true}, 3*time.Second, 0,
		k6Stage{"2s", 10}, k6Stage{"0s", 0}, k6Stage{"1s", 5})
	many := pace.Profile{Pieces: []pace.Piece{{ForNs: 1000, To: 1}}, Cycles: true}
	if _, got, err := stages(many, time.Hour, 1); err == nil {
		t.Errorf("%d stages are not an error", len(got))
	}
}

// TestJMeterPlan checks that JMeter's functions and XML's characters are escaped, and that the plan
// stays XML.
func TestJMeterPlan(t *testing.T) {
	check := func(change func(*load.Spec), want ...string) {
		t.Helper()
		s := plain()
		change(&s)
		_, j := commandOf(t, "jmeter", s)
		b, err := os.ReadFile(filepath.Join(j.dir, "plan.jmx"))
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		d := xml.NewDecoder(strings.NewReader(string(b)))
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v in\n%s", err, b)
			}
			if text, ok := token.(xml.CharData); ok {
				said = append(said, string(text))
			}
		}
		for _, w := range want {
			if !slices.Contains(said, w) {
				t.Errorf("it says %q, not %q", said, w)
			}
		}
	}
	first := func(r load.Request) func(*load.Spec) {
		return func(s *load.Spec) { s.Scenario.Requests[0] = r }
	}
	check(func(*load.Spec) {}, "127.0.0.1", "8080", "/a?b=1", "GET", "8", "2", "2500", "true")
	check(first(load.Request{Method: "POST", Path: "/{key}", Body: `<a b="$x, ${{y}}">\`}),
		"/${__Random(1,9)}", `<a b="\$x\, \${y}">\\`)
	check(first(load.Request{Method: "GET", Path: "/$a,b"}), "/$a,b") // no function call in it
	check(perS(2.5), "rate(2.5/s) even_arrivals(2 s)", "9")
	check(func(s *load.Spec) { perS(4)(s); s.Schedule.Arrivals = pace.Poisson },
		"rate(4/s) random_arrivals(2 s)")
	check(func(s *load.Spec) { s.Churn = 1 }, "false")
}

// TestHeyReport checks hey's report through its template: three responses, one of them with an
// error status, and a failure.
func TestHeyReport(t *testing.T) {
	j := jobFor(t, hey, plain())
	const text = "prony 5 2.5 640\nerror 2 Get \"x\": dial tcp: connection refused\n" +
		"0.001 200 0.0005\n0.003 200 0\n0.002 503 0\n"
	got, err := readHey(j, &output{text: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	want := record.Errors{Connect: 2, Status: 1, Example: got.errors.Example}
	if got.good != 2 || got.errors != want || got.bytesIn != 640 || got.durationNs != 25e8 {
		t.Errorf("it is %+v", got)
	}
	if got.service.Count != 2 || got.service.MinNs != 1e6 || got.errored.Count != 1 ||
		got.errored.MinNs != 2e6 || got.connect.Count != 1 || got.connect.MinNs != 5e5 {
		t.Errorf("times are %+v, %+v, %+v", got.service, got.errored, got.connect)
	}
	// Of 1,000,300 responses it keeps a million; the others count as good, because nothing is known
	// about them.
	var b strings.Builder
	b.WriteString("prony " + strconv.Itoa(heyMost+300) + " 1 1\n")
	b.WriteString(strings.Repeat("0.001 200 0\n", heyMost-1) + "0.001 500 0\n")
	got, err = readHey(j, &output{text: []byte(b.String())})
	if err != nil || got.good != heyMost+299 || got.errors.Status != 1 || len(got.notes) != 1 {
		t.Errorf("%d good, %+v, %q, %v", got.good, got.errors, got.notes, err)
	}
	if _, err := readHey(j, &output{}); err == nil {
		t.Error("no report is not an error")
	}
}

// TestTallyOfARate checks that unsent requests count as unanswered, whether the tool reports them
// or they follow from the rate.
func TestTallyOfARate(t *testing.T) {
	s := rated(plain(), 100)
	tally := &tally{good: 90, errors: record.Errors{Status: 4, Connect: 2}, censored: 1,
		durationNs: 1e9}
	l := tally.load(&s)
	// 100 were due; 90 + 4 + 1 were sent, so 5 were not; the two failed connects were never
	// requests.
	if l.Scheduled != 100 || l.Sent != 95 || l.Censored != 6 || l.Done != 90 || l.RatePerS != 100 {
		t.Errorf("it is %+v", l)
	}
	// 100 - 90 - 6 = 4 were neither answered nor failed in a second.
	if l.BacklogPerS != 4 || l.ThroughputPerS != 90 || l.Arrivals != pace.Constant {
		t.Errorf("it is %+v", l)
	}
	if l.ResponseTime.Count != 0 {
		t.Errorf("response time is %+v", l.ResponseTime)
	}
}
