package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prony.example/internal/launch/cgroup"
	"prony.example/internal/report/runs"
	"prony.example/record"
)

// change sends each changing request once.
func (s *site) change(t *testing.T) {
	t.Helper()
	put(t, `{"seq":1,"kind":"begin","pid":0}`+"\n"+`{"seq":2,"kind":"end","outcome":"done"}`+"\n",
		s.dir, monday, record.ProgressFile)
	for _, row := range []struct {
		method, path, body string
		want               int
	}{
		{"GET", "/runs/" + monday + "/events", "", 200},
		{"PUT", "/runs/" + monday + "/labels", `{"branch":"next"}`, 200},
		{"PUT", "/runs/" + monday + "/labels", `{"a=b":"next"}`, 422},
		{"PUT", "/runs/" + monday + "/labels", `{"branch":1}`, 400},
		{"PUT", "/runs/" + monday + "/labels", `{"branch":null}`, 400},
		{"PUT", "/runs/" + monday + "/labels", `null`, 400},
		{"POST", "/runs/" + monday + "/stop", `null`, 400},
		{"PUT", "/runs/" + monday + "/labels", `{} {}`, 400},
		{"PUT", "/runs/none/labels", `{}`, 404},
		{"PUT", "/runs/" + monday + "/labels", `{"a":"` + strings.Repeat("x", 1<<17) + `"}`, 413},
		{"POST", "/runs/" + monday + "/stop", `{"reason":"enough"}`, 409},
		{"POST", "/runs/" + monday + "/stop", `{"why":"enough"}`, 400},
		{"POST", "/runs/" + monday + "/stop", `{"reason":"a\nb"}`, 400},
		{"POST", "/runs/none/stop", `{}`, 404},
		{"POST", "/plan", `{}`, 200},
		{"POST", "/plan", `{"suites":"canonical"}`, 400},
		{"POST", "/check", `{"yaml":""}`, 200},
		{"POST", "/check", `{"text":""}`, 400},
		{"POST", "/check", `{"yaml":"` + strings.Repeat("#", 1<<17) + `"}`, 413},
		{"POST", "/runs", `{"suite":"none"}`, 422},
		{"DELETE", "/runs/none", ``, 404},
		{"DELETE", "/runs/" + monday, ``, 204},
		{"GET", "/runs/" + monday, "", 404},
		{"GET", "/runs/" + monday + "/events", "", 404},
	} {
		answer, text := s.ask(t, row.method, row.path, row.body)
		if answer.StatusCode != row.want {
			t.Errorf("%s %s %.80s: %d %.200s, want %d", row.method, row.path, row.body,
				answer.StatusCode, text, row.want)
		}
	}
	for _, op := range []string{"stop", "begin", "hold", "release", "request", "short"} {
		s.told[op] = true // tests of their own have
	}
}

// underway returns a site whose run has a process, which sleeps.
func underway(t *testing.T) (s *site, lab *exec.Cmd) {
	t.Helper()
	s = &site{}
	lab = exec.Command("sleep", "1000")
	if err := lab.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = lab.Process.Kill() // it may have ended
		_ = lab.Wait()
	})
	dir := t.TempDir()
	runList, err := runs.Open(dir, runs.Options{Born: cgroup.Born})
	if err != nil {
		t.Fatal(err)
	}
	s = newSite(t, Options{Runs: runList})
	s.dir = dir
	err = os.CopyFS(filepath.Join(dir, monday), os.DirFS(filepath.Join("..", "report", "runs",
		"testdata", "run")))
	if err != nil {
		t.Fatal(err)
	}
	s.add(t, fmt.Sprintf(`{"seq":1,"kind":"begin","pid":%d,"processStart":%q}`, lab.Process.Pid,
		cgroup.Born(lab.Process.Pid)))
	return s, lab
}

// add appends to the run's progress.
func (s *site) add(t *testing.T, lines ...string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(s.dir, monday, record.ProgressFile),
		os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.WriteString(f, strings.Join(lines, "\n")+"\n"); err != nil {
		t.Fatal(err)
	}
}

// TestStop checks that a run under way is stopped by its process only, and that its reports have
// the reason.
func TestStop(t *testing.T) {
	s, lab := underway(t)
	if answer, text := s.ask(t, "DELETE", "/runs/"+monday, ""); answer.StatusCode != 409 {
		t.Errorf("a run under way: %d %s", answer.StatusCode, text)
	}
	answer, text := s.ask(t, "POST", "/runs/"+monday+"/stop", `{"reason":"the fan is loud"}`)
	if answer.StatusCode != http.StatusAccepted {
		t.Errorf("stop: %d %s", answer.StatusCode, text)
	}
	if err := lab.Wait(); err == nil || !strings.Contains(err.Error(), "interrupt") {
		t.Errorf("the lab ended with %v", err)
	}
	_, text = s.ask(t, "GET", "/runs/"+monday, "")
	var e runs.Entry
	if err := json.Unmarshal([]byte(text), &e); err != nil || e.State == runs.Running {
		t.Errorf("afterwards it is %s, %v", text, err)
	}
	if why := record.StopReason(filepath.Join(s.dir, monday)); why != "the fan is loud" {
		t.Errorf("the lab is told %q", why)
	}
	answer, text = s.ask(t, "POST", "/runs/"+monday+"/stop", `{}`)
	if answer.StatusCode != http.StatusConflict {
		t.Errorf("stop it again: %d %s", answer.StatusCode, text)
	}
}

// watched reads most events, as ID KIND, or fewer if the stream ends.
func (s *site) watched(t *testing.T, last string, most int) (out []string, status int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET",
		s.at.URL+"/api/v1/runs/"+monday+"/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	id := ""
	for lines := bufio.NewScanner(answer.Body); len(out) < most && lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			id = rest
		}
		if kind, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			out = append(out, id+" "+kind)
		}
	}
	return out, answer.StatusCode
}

// kindsOf returns only the kinds.
func kindsOf(events []string) (out []string) {
	for _, e := range events {
		out = append(out, e[strings.LastIndexByte(e, ' ')+1:])
	}
	return out
}

// TestEvents checks that events come as they are written, from the beginning or after the last
// received one, that an incomplete line waits for its end, and that of consecutive ticks only the
// last comes.
func TestEvents(t *testing.T) {
	s, lab := underway(t)
	check := func(want string, got []string) {
		t.Helper()
		if text := strings.Join(kindsOf(got), " "); text != want {
			t.Errorf("events %q, want %s", got, want)
		}
	}
	const tick = `{"seq":4,"kind":"tick","p50Ns":1}`
	s.add(t, `{"seq":2,"kind":"log","text":"a"}`, tick, tick, tick, "no event", `{"kind":"x\ny"}`)
	first, _ := s.watched(t, "", 4)
	check(`begin log tick x\ny`, first)
	later := make(chan []string)
	go func() {
		got, _ := s.watched(t, strings.Fields(first[1])[0], 4)
		later <- got
	}()
	time.Sleep(2 * lookEvery)
	s.add(t, `{"seq":9,"kind":"step","step":"measure"}`+"\n"+`{"seq":10,"kind":"ti`+
		`ck"}`+"\n"+`{"seq":11,"kind":"trial","text":"b"}`)
	check(`tick x\ny step tick`, <-later)
	for _, wrong := range []string{"7", "-1", "x", "999999"} { // no place where a line begins
		got, _ := s.watched(t, wrong, 2)
		check("begin log", got)
	}
	// The process is killed: watchers get an event.
	if err := lab.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = lab.Wait() // it was killed
	got, _ := s.watched(t, "", 99)
	if end := kindsOf(got); end[len(end)-1] != gone {
		t.Errorf("a lab that was killed ends with %q", got)
	}
	// It has ended in order: the stream ends, and another request gets no content.
	s.add(t, `{"seq":12,"kind":"end","outcome":"stopped","text":"c"}`)
	got, _ = s.watched(t, "", 99)
	if end := kindsOf(got); end[len(end)-1] != "end" {
		t.Errorf("a run that has ended ends with %q", got)
	}
	last := strings.Fields(got[len(got)-1])[0]
	if got, status := s.watched(t, last, 9); status != http.StatusNoContent || len(got) > 0 {
		t.Errorf("behind the end there are %q, %d", got, status)
	}
}

// TestRequestsMakeNoRoom checks that the connection of a valid request stays open if another client
// connects at the bound of connections and stays silent.
func TestRequestsMakeNoRoom(t *testing.T) {
	s, _ := underway(t)
	s.Connections = 1
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	answer, err := http.Get("http://" + l.Addr().String() + "/api/v1/runs/" + monday + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	await := func(want string) {
		t.Helper()
		for lines.Scan() {
			if lines.Text() == want {
				return
			}
		}
		t.Errorf("no %q before the end of the stream: %v", want, lines.Err())
	}
	await("event: begin")
	silent, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	time.Sleep(lookEvery)
	s.add(t, `{"seq":2,"kind":"log","text":"a"}`)
	await("event: log")
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestWatchers checks the limit of watchers, and that one that leaves makes room.
func TestWatchers(t *testing.T) {
	s, _ := underway(t)
	var open []io.Closer
	defer func() {
		for _, o := range open {
			_ = o.Close() // one is closed already
		}
	}()
	watch := func() int {
		t.Helper()
		answer, err := http.Get(s.at.URL + "/api/v1/runs/" + monday + "/events")
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, answer.Body)
		return answer.StatusCode
	}
	for range maxWatchers {
		if got := watch(); got != http.StatusOK {
			t.Fatalf("a watcher gets %d", got)
		}
	}
	if got := watch(); got != http.StatusServiceUnavailable {
		t.Errorf("one too many gets %d", got)
	}
	if err := open[0].Close(); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if watch() == http.StatusOK {
			return
		}
		time.Sleep(lookEvery)
	}
	t.Error("one has left, and there is no room")
}
