package collector_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/tidy"
	"prony.example/internal/telemetry"
	"prony.example/internal/telemetry/locate"
	"prony.example/record"
)

// TestMain lets the tests start this binary as the processes that they need.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 3 && os.Args[1] == "lab":
		exit(lab(os.Args[2], os.Args[3]))
	case len(os.Args) > 2 && os.Args[1] == "mute": // never reports its addresses
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// lab starts a collector, prints its process number, and waits to be killed.
func lab(program, dir string) error {
	c, err := telemetry.Launch(context.Background(),
		telemetry.LaunchSpec{Program: program, Dir: dir})
	if err != nil {
		return err
	}
	fmt.Println(c.PID())
	<-c.Exited()
	return nil
}

// homeProgram returns prony-home of this checkout, built on first use.
func homeProgram(t *testing.T) string {
	t.Helper()
	root, err := tidy.Root()
	if err != nil {
		t.Fatal(err)
	}
	path, err := locate.Finder{Root: root}.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func launched(t *testing.T, s telemetry.LaunchSpec) *telemetry.Child {
	t.Helper()
	s.Program = homeProgram(t)
	c, err := telemetry.Launch(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(strings.Join(c.Log(20), "\n"))
		}
		_ = c.Stop(context.Background()) // tests that need a regular end have checked it
	})
	return c
}

// until waits for another process, for two minutes at most.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	end := time.After(2 * time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("it did not come about")
		}
	}
}

func send(t *testing.T, e telemetry.Endpoints, path, body string) {
	t.Helper()
	res, err := http.Post("http://"+e.HTTP+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(path, res.Status, string(text), err)
	}
}

func ask(t *testing.T, e telemetry.Endpoints, expr string) string {
	t.Helper()
	res, err := http.Get("http://" + e.Query + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var a struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil {
		t.Fatal(err)
	}
	if len(a.Data.Result) != 1 {
		return fmt.Sprintf("%d series", len(a.Data.Result))
	}
	return fmt.Sprint(a.Data.Result[0].Value[1])
}

func spanJSON(trial string, n int, at int64) string {
	var spans []string
	for i := range n {
		spans = append(spans, fmt.Sprintf(`{"traceId":"5b8efff798038103d269b6338%07x",`+
			`"spanId":"eee19b7ec3%06x","name":"GET /","kind":2,"startTimeUnixNano":"%d",`+
			`"endTimeUnixNano":"%d"}`, at%1e6+int64(i), i+1, at, at+1000))
	}
	return fmt.Sprintf(`{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name",`+
		`"value":{"stringValue":"shop"}},{"key":"prony.trial","value":{"stringValue":%q}}]},`+
		`"scopeSpans":[{"spans":[%s]}]}]}`, trial, strings.Join(spans, ","))
}

func pointJSON(value int, at int64) string {
	return fmt.Sprintf(`{"resourceMetrics":[{"resource":{"attributes":[{"key":"service.name",`+
		`"value":{"stringValue":"shop"}}]},"scopeMetrics":[{"metrics":[{"name":"jobs","gauge":{`+
		`"dataPoints":[{"timeUnixNano":"%d","asInt":"%d"}]}}]}]}]}`, at, value)
}

func stats(t *testing.T, dir string) (s telemetry.Stats) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, telemetry.StatsFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func received(t record.Telemetry, signal string) int64 {
	for _, s := range t.Signals {
		if s.Name == signal {
			return s.Received
		}
	}
	return -1
}

var trial = telemetry.Trial{Run: "run", ID: "b1-01-shop", Target: "shop", Variant: "none", Block: 1}

// A collector that is killed during a trial and restarted on its folder has everything that arrived
// before, continues to count, and marks the trial as partial.
func TestKilledInTheMiddle(t *testing.T) {
	dir := t.TempDir()
	first := launched(t, telemetry.LaunchSpec{Dir: dir})
	client := telemetry.NewClient(first.Endpoints().Query, first.Token())
	defer client.Close()
	if err := client.Begin(t.Context(), trial); err != nil {
		t.Fatal(err)
	}
	now := clock.Wall().UnixNano()
	client.Mark(telemetry.Mark{Trial: trial.ID, Kind: telemetry.Open, Name: "high", WallNs: now})
	send(t, first.Endpoints(), "/v1/traces", spanJSON(trial.ID, 5, now))
	send(t, first.Endpoints(), "/v1/metrics", pointJSON(7, now))
	until(t, func() bool {
		s := stats(t, dir)
		return received(s.Telemetry, record.Spans) == 5 &&
			received(s.Telemetry, record.Points) == 1 && len(s.Trials) == 1 &&
			len(s.Trials[0].Marks) == 1
	})
	if err := syscall.Kill(first.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-first.Exited()
	lost := client.End(t.Context())
	if !strings.Contains(lost.Telemetry.Partial, "telemetry collector") {
		t.Errorf("the report of a home that is gone: %+v", lost)
	}

	second := launched(t, telemetry.LaunchSpec{Dir: dir})
	if got := ask(t, second.Endpoints(), "jobs"); got != "7" {
		t.Errorf("jobs is %s after the kill, want 7", got)
	}
	const high = `prony_phase{name="high", trial="b1-01-shop", kind="window"}`
	if got := ask(t, second.Endpoints(), high); got != "1" {
		t.Errorf("prony_phase is %s after the kill, want 1", got)
	}
	send(t, second.Endpoints(), "/v1/traces", spanJSON(trial.ID, 3, clock.Wall().UnixNano()))
	report := endOf(t, second)
	if n := received(report.Telemetry, record.Spans); n != 8 {
		t.Errorf("%d spans in the report, want 5 + 3", n)
	}
	if got := report.Telemetry.Signals[2]; got.Kept != 8 || got.Dropped != 0 {
		t.Errorf("%+v, want all 8 kept", got)
	}
	if !strings.Contains(report.Telemetry.Partial, "collector was killed") {
		t.Errorf("partial: %q", report.Telemetry.Partial)
	}
	if got := report.Loads["high"].Spans; got != 8 {
		t.Errorf("%d spans in the window that the first home saw open, want 8", got)
	}
	data, err := os.ReadFile(filepath.Join(dir, telemetry.SpansFile))
	if n := strings.Count(string(data), "\n"); err != nil || n != 8 {
		t.Errorf("%d traces are stored, %v; want 8", n, err)
	}
	if got := ask(t, second.Endpoints(), high); got != "0 series" {
		t.Errorf("prony_phase is %s after the trial, want none", got)
	}
	if err := second.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if s := stats(t, dir); s.Broken != 1 || !s.Ended || len(s.Trials) != 0 ||
		received(s.Telemetry, record.Spans) != 8 {
		t.Errorf("%+v, want broken once, ended, no trial, 8 spans", s)
	}
}

// endOf ends the trial with a client that did not begin it, like a restarted lab.
func endOf(t *testing.T, c *telemetry.Child) (r telemetry.Report) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		"http://"+c.Endpoints().Query+"/prony/end", strings.NewReader(`{"trial":"`+trial.ID+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", telemetry.Bearer+c.Token())
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

// Both SIGTERM and the end of standard input end a collector regularly, with its data stored.
func TestEndsWell(t *testing.T) {
	for name, end := range map[string]func(c *telemetry.Child) error{
		"stdin":   func(c *telemetry.Child) error { return c.Stop(context.Background()) },
		"SIGTERM": func(c *telemetry.Child) error { return syscall.Kill(c.PID(), syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c := launched(t, telemetry.LaunchSpec{Dir: dir})
			client := telemetry.NewClient(c.Endpoints().Query, c.Token())
			defer client.Close()
			if err := client.Begin(t.Context(), trial); err != nil {
				t.Fatal(err)
			}
			send(t, c.Endpoints(), "/v1/traces", spanJSON(trial.ID, 5, clock.Wall().UnixNano()))
			if err := end(c); err != nil {
				t.Fatal(err)
			}
			<-c.Exited()
			if err := c.Exit(); err != nil {
				t.Error(err)
			}
			data, err := os.ReadFile(filepath.Join(dir, telemetry.SpansFile))
			if n := strings.Count(string(data), "\n"); err != nil || n != 5 {
				t.Errorf("%d traces were kept, %v; want 5", n, err)
			}
			if s := stats(t, dir); !s.Ended || received(s.Telemetry, record.Spans) != 5 {
				t.Errorf("%+v, want ended with 5 spans", s)
			}
		})
	}
}

// If the lab is killed, its collector ends without a message.
func TestEndsWithTheLab(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self, "lab", homeProgram(t), t.TempDir())
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	text, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	until(t, func() bool {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		// Without a process that reaps orphans it stays a zombie.
		return err != nil || strings.Contains(string(state), ") Z ")
	})
}

// All threads of the collector run on its cores with a higher nice value. The lab's own threads are
// unchanged.
func TestCoresAndNice(t *testing.T) {
	var mine unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mine); err != nil {
		t.Fatal(err)
	}
	var cores []int
	for i := range 1024 {
		if mine.IsSet(i) {
			cores = append(cores, i)
		}
	}
	if len(cores) < 2 {
		t.Skip("there is one core only")
	}
	c := launched(t, telemetry.LaunchSpec{Dir: t.TempDir(), Cores: cores[1:2]})
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", c.PID()))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		tid, _ := strconv.Atoi(task.Name()) // names are numbers
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(tid, &set); errors.Is(err, unix.ESRCH) {
			continue
		} else if err != nil || set.Count() != 1 || !set.IsSet(cores[1]) {
			t.Errorf("thread %d may run on %d cores, %v; want core %d", tid, set.Count(), err,
				cores[1])
		}
		// The system call counts from 20 downwards (getpriority(2)).
		if nice, err := unix.Getpriority(unix.PRIO_PROCESS, tid); err != nil || 20-nice != 10 {
			t.Errorf("thread %d has niceness %d, %v; want 10", tid, 20-nice, err)
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var after unix.CPUSet
	if err := unix.SchedGetaffinity(0, &after); err != nil || after != mine {
		t.Errorf("the lab itself was moved, %v", err)
	}
}

// Containers reach the collector at a bridge's address; the control address stays on loopback.
func TestListen(t *testing.T) {
	c := launched(t, telemetry.LaunchSpec{Dir: t.TempDir(), Listen: "127.0.0.2"})
	at := c.Endpoints()
	for name, address := range map[string]string{
		"127.0.0.2 gRPC": at.GRPC, "127.0.0.2 HTTP": at.HTTP, "127.0.0.2 Zipkin": at.Zipkin,
		"127.0.0.1 query": at.Query,
	} {
		want, _, _ := strings.Cut(name, " ")
		if host, _, err := net.SplitHostPort(address); err != nil || host != want {
			t.Errorf("%s is %s, %v", name, address, err)
		}
	}
	send(t, at, "/v1/metrics", pointJSON(7, clock.Wall().UnixNano()))
	if got := ask(t, at, "jobs"); got != "7" {
		t.Errorf("jobs is %s, want 7", got)
	}
}

// A collector that fails to start is killed, and the error has its last output.
func TestDoesNotComeUp(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const nobodys = "192.0.2.1" // of no machine (RFC 5737)
	_, err = telemetry.Launch(t.Context(), telemetry.LaunchSpec{Program: homeProgram(t),
		Dir: t.TempDir(), Listen: nobodys})
	if err == nil || !strings.Contains(err.Error(), "listen for telemetry on "+nobodys) {
		t.Errorf("%v, want the home's own words", err)
	}
	_, err = telemetry.Launch(t.Context(),
		telemetry.LaunchSpec{Program: "/nowhere", Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("%v", err)
	}
	wrapper := filepath.Join(t.TempDir(), "mute")
	script := "#!/bin/sh\nexec '" + self + "' mute now\n"
	if err := os.WriteFile(wrapper, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = telemetry.Launch(ctx, telemetry.LaunchSpec{Program: wrapper, Dir: t.TempDir()})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want that it did not say where it listens", err)
	}
}
