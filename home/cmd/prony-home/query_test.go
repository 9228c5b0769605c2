package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"prony.example/home/tsdb"
	"prony.example/internal/base/cli"
	"prony.example/internal/dev/strangers"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/dev/tidy"
	"prony.example/internal/telemetry"
	"prony.example/record"
)

// storeMetrics stores in a run's folder what the services of its trials would have sent: 20
// requests a second during each trial, and the memory of a JVM.
func storeMetrics(t *testing.T, dir string) {
	t.Helper()
	_, records, _, err := record.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	now := records[0].Time
	s, err := tsdb.Open(filepath.Join(dir, telemetry.Dir, telemetry.TSDBDir),
		tsdb.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		labels := map[string]string{"service_name": r.Target.Service, "prony_trial": r.Trial,
			"prony_target": r.Target.Name, "area": "heap", "jvm_memory_pool_name": "G1 Old Gen"}
		for second := range seconds(r) + 1 {
			now = r.Time.Add(time.Duration(second) * time.Second)
			md := pmetric.NewMetrics()
			list := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
			for name, v := range map[string]float64{
				"http_server_request_duration_seconds_count": float64(20 * second),
				"http_server_request_duration_seconds_sum":   float64(second) / 10,
				"jvm_memory_used_bytes":                      float64(50+second) * (1 << 20),
				"jvm_memory_committed_bytes":                 128 << 20,
				"jvm_memory_used_after_last_gc_bytes":        40 << 20,
			} {
				m := list.AppendEmpty()
				m.SetName(name)
				p := m.SetEmptyGauge().DataPoints().AppendEmpty()
				p.SetTimestamp(pcommon.NewTimestampFromTime(now))
				p.SetDoubleValue(v)
				for k, v := range labels {
					p.Attributes().PutStr(k, v)
				}
			}
			if err := s.ConsumeMetrics(t.Context(), md); err != nil {
				t.Fatal(err)
			}
		}
		now = now.Add(time.Millisecond)
		if err := s.EndTrial(now, r.Trial); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// seconds returns the duration of a trial in whole seconds.
func seconds(r *record.Record) int { return int(time.Duration(r.DurationNs) / time.Second) }

// told makes a run of two trials with metrics.
func told(t *testing.T) (dir string, records []*record.Record) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "RUN")
	w, err := record.Create(dir, record.Run{ID: "RUN"})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, name := range []string{"go-nethttp", "rust-axum"} {
		r := &record.Record{Trial: fmt.Sprintf("b1-%02d-%s", i+1, name), Time: at,
			DurationNs: int64(9*time.Second + 400*time.Millisecond), Outcome: record.Failed}
		r.Target.Name, r.Target.Service = name, name
		if err := w.Append(r); err != nil {
			t.Fatal(err)
		}
		at = at.Add(10 * time.Second)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	storeMetrics(t, dir)
	_, records, _, err = record.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, records
}

func TestQuery(t *testing.T) {
	dir, records := told(t)
	first := records[0]
	const rate = `sum by (service_name) (rate(http_server_request_duration_seconds_count[5s]))`
	check := func(exit int, args []string, wants ...string) {
		t.Helper()
		stdout, stderr, got := say(t, append([]string{"query"}, args...)...)
		if got != exit {
			t.Errorf("%q exits %d, want %d: %s%s", args, got, exit, stdout, stderr)
		}
		for _, want := range wants {
			if !strings.Contains(stdout+stderr, want) {
				t.Errorf("%q lacks %q:\n%s", args, want, stdout+stderr)
			}
		}
	}
	// The rate is 20 a second at most, because its window opens and closes at the edges.
	check(cli.Fine, []string{dir, rate}, "SERIES", "LAST", "MIN", "MEAN", "MAX", "COURSE",
		`{service_name="go-nethttp"}  `, "  20  ", "██")
	check(cli.Fine, []string{dir, "--list"}, "jvm_memory_used_bytes",
		"http_server_request_duration_seconds_count")
	check(cli.Fine, []string{filepath.Join(dir, "telemetry"), rate}, "go-nethttp")
	// 128 - 50 - 1 a second MiB at the trial's end, although its series have ended by the run's.
	// The steps end with the trial, a fraction of a second after the last value, when its series
	// have ended a millisecond after it: the step before is a second earlier.
	atEnd := "  " + strconv.Itoa(78-(seconds(first)-1))
	const free = `sum by (service_name) (jvm_memory_committed_bytes - jvm_memory_used_bytes)` +
		` / 1024 / 1024`
	check(cli.Fine, []string{dir, free, "--at", "end", "--trial", first.Trial},
		`{service_name="`+first.Target.Service+`"}`+atEnd)
	check(cli.Fine, []string{dir, free, "--at", "end"}, "  "+strconv.Itoa(78-seconds(records[1])))
	fifth := strconv.FormatInt(first.Time.Unix()+5, 10)
	check(cli.Fine, []string{dir, free, "--at", fifth, "--trial", first.Trial}, "  73")
	check(cli.Fine, []string{dir, free, "--at", first.Time.Add(5 * time.Second).Format(
		time.RFC3339), "--trial", first.Trial}, "  73")
	check(cli.Fine, []string{dir, "nothing_of_the_kind"}, "No series", "--list")
	check(cli.Fine, []string{dir, "jvm_memory_used_bytes", "--trial", first.Trial},
		first.Target.Service, strconv.Itoa(50<<20+seconds(first)<<19)) // the mean of its ends
	for _, row := range []struct {
		args []string
		exit int
		says string
	}{
		{[]string{dir, "sum("}, cli.Failed, "unclosed left parenthesis"},
		{[]string{t.TempDir(), "up"}, cli.Failed, "the run has no metrics"},
		{[]string{dir, "up", "--trial", "b9"}, cli.Misused, first.Trial},
		{[]string{dir, "up", "--step", "1ns"}, cli.Failed, "use a step of"},
		{[]string{dir, "--serve", "127.0.0.1:-1"}, cli.Failed, "use another address"},
	} {
		check(row.exit, row.args, row.says)
	}
}

// Metric names of services are printed to a terminal without control characters.
func TestNothingObeyedReachesTheTerminal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "RUN")
	s, err := tsdb.Open(filepath.Join(dir, telemetry.Dir, telemetry.TSDBDir), tsdb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	md := pmetric.NewMetrics()
	r := md.ResourceMetrics().AppendEmpty()
	r.Resource().Attributes().PutStr("service.name", "shop\x1b]0;pwned\a")
	m := r.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("jobs")
	m.SetDescription("\x1b[2J\u009b8m")
	m.SetEmptyGauge().DataPoints().AppendEmpty().SetTimestamp(
		pcommon.NewTimestampFromTime(time.Now()))
	if err := errors.Join(s.ConsumeMetrics(t.Context(), md), s.Close()); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--list"}, {"jobs"}, {"jobs", "--format", "csv"},
		{"sum(\x1b[2J"}} {
		stdout, stderr, _ := say(t, append([]string{"query", dir}, args...)...)
		all := stdout + stderr
		obeyed := func(r rune) bool { return r != '\n' && unicode.IsControl(r) }
		if strings.ContainsFunc(all, obeyed) {
			t.Errorf("%q prints %q", args, all)
		}
		if !strings.Contains(all, `\u001b`) && !strings.Contains(all, `\x1b`) {
			t.Errorf("%q does not show it: %q", args, all)
		}
	}
}

func TestQueryForms(t *testing.T) {
	dir, records := told(t)
	trial := records[0].Trial
	at := strconv.FormatInt(records[0].Time.Unix()+5, 10)
	stdout, stderr, exit := say(t, "query", dir, "jvm_memory_used_bytes", "--trial", trial,
		"--at", at, "--format", "json")
	var answer struct {
		Data struct {
			ResultType string
			Result     []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.Unmarshal([]byte(stdout), &answer); err != nil || exit != cli.Fine ||
		answer.Data.ResultType != "vector" || len(answer.Data.Result) != 1 ||
		answer.Data.Result[0].Value[1] != strconv.Itoa(55<<20) ||
		answer.Data.Result[0].Metric["__name__"] != "jvm_memory_used_bytes" {
		t.Errorf("%v: %+v %s%s", err, answer, stdout, stderr)
	}
	file := filepath.Join(t.TempDir(), "a.csv")
	_, stderr, exit = say(t, "query", dir, "jvm_memory_used_bytes", "--trial", trial,
		"--step", "1s", "--format", "csv", "-o", file)
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err, stderr, exit)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	const head = "time,value,metric,area,jvm_memory_pool_name,prony_target,prony_trial,service_name"
	// A point at each end of each second.
	if err != nil || strings.Join(rows[0], ",") != head || len(rows) != 1+seconds(records[0])+1 {
		t.Errorf("%v: %d rows, %v", err, len(rows), rows)
	}
}

// A stored run is served until the command ends.
// served serves the metrics of a run, and returns the address and a function that ends it.
func served(t *testing.T, stderr io.Writer) (url string, end func()) {
	t.Helper()
	dir, _ := told(t)
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"query", dir, "--serve", "127.0.0.1:0"}, nil, w, stderr)
	}()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	line := make([]byte, 200)
	n, err := r.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	url, _, _ = strings.Cut(string(line[:n]), " ")
	return url, end
}

func TestQueryServes(t *testing.T) {
	url, end := served(t, io.Discard)
	resp, err := http.Get(url + "/api/v1/label/service_name/values")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if want := `{"status":"success","data":["go-nethttp","rust-axum"]}`; err != nil ||
		string(body) != want {
		t.Errorf("%v: %s, want %s", err, body, want)
	}
	rebound, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		url+"/api/v1/labels", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	rebound.Host = "rebound.example"
	if resp, err = http.DefaultClient.Do(rebound); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("a host of anybody's: %s", resp.Status)
	}
	http.DefaultClient.CloseIdleConnections()
	end()
}

// Queries in the documents are valid PromQL, and return a result or a message that there is none.
func TestQueriesInTheDocuments(t *testing.T) {
	repo, err := tidy.Root()
	if err != nil {
		t.Fatal(err)
	}
	commands, err := tidy.Commands(repo)
	if err != nil {
		t.Fatal(err)
	}
	dir, _ := told(t)
	t.Chdir(filepath.Dir(dir))
	asked := 0
	for _, c := range commands {
		if c.Args[0] != "query" {
			continue
		}
		asked++
		if out, errs, exit := say(t, c.Args...); exit != cli.Fine || out == "" {
			t.Errorf("%s:%d: exit %d\n%s%s", c.File, c.Line, exit, out, errs)
		}
	}
	if asked < 4 {
		t.Errorf("the documents ask %d times", asked)
	}
}

// labels asks for the labels of kept metrics, and reports whether the connection was used before.
func labels(t *testing.T, client *http.Client, url string) (reused bool, err error) {
	t.Helper()
	trace := &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { reused = c.Reused }}
	r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace),
		http.MethodGet, url+"/api/v1/labels", http.NoBody)
	if err != nil {
		return false, err
	}
	res, err := client.Do(r)
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	_, err = io.ReadAll(res.Body)
	return reused, err
}

// Clients that hold connections to kept metrics do not shut out others, and are reported in one
// line.
func TestQueryCrowd(t *testing.T) {
	testsets.Live(t)
	const hostile = maxConns + 300
	strangers.NeedFiles(t, 2*hostile)
	var errs bytes.Buffer
	url, end := served(t, &errs)
	ask := func(client *http.Client) (reused bool, err error) { return labels(t, client, url) }
	known := &http.Client{Transport: &http.Transport{}}
	if _, err := ask(known); err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(url, "http://")
	head := "POST /api/v1/query HTTP/1.1\r\nHost: " + address + "\r\nContent-Length: 99\r\n"
	others := &strangers.Crowd{Address: address, Beginning: head, Invalid: head + "\r\n"}
	others.Gather(t, hostile)
	alone := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for range 5 {
		if _, err := ask(alone); err != nil {
			t.Error(err)
		}
	}
	if reused, err := ask(known); err != nil || !reused {
		t.Errorf("the connection of a known client: reused %v, %v", reused, err)
	}
	known.CloseIdleConnections()
	end()
	lines := regexp.MustCompile(`(?m)^prony: closed (\d+) connections without a complete request, `+
		`because 1024 were open$`).FindAllStringSubmatch(errs.String(), -1)
	if len(lines) < 1 || len(lines) > 2 || strings.Count(errs.String(), "\n") != len(lines) {
		t.Fatalf("it said %q", &errs) // two if the first ones were reported while it ran
	}
	sum := 0
	for _, line := range lines {
		n, _ := strconv.Atoi(line[1])
		sum += n
	}
	if sum < hostile-maxConns || sum > hostile+10 {
		t.Errorf("it reported %d of %d", sum, hostile)
	}
}
