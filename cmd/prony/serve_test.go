package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch/cgroup"
	"prony.example/internal/observe/host"
)

// monday is a run that the server has.
const monday = "2026-11-23T21-23-22Z"

// desk is a server of the real program.
type desk struct {
	t    *testing.T
	dir  string // of the runs
	link string // as printed
	base string // http://ADDRESS
	cmd  *exec.Cmd

	stderr io.Writer // nil: the test's
}

// serving starts prony serve on a folder with one run, in a checkout.
func serving(t *testing.T, flags ...string) *desk {
	t.Helper()
	root := t.TempDir()
	furnish(t, root)
	d := &desk{t: t, dir: filepath.Join(root, "results")}
	from := os.DirFS("../../internal/report/runs/testdata/run")
	if err := os.CopyFS(filepath.Join(d.dir, monday), from); err != nil {
		t.Fatal(err)
	}
	d.start(root, flags...)
	return d
}

func (d *desk) start(root string, flags ...string) {
	t := d.t
	t.Helper()
	d.begin("", append([]string{"serve", d.dir, "--root", root, "--listen", "127.0.0.1:0"},
		flags...)...)
}

// begin starts the program in a folder and waits for the line that it prints.
func (d *desk) begin(dir string, args ...string) {
	t := d.t
	t.Helper()
	d.cmd = exec.Command(os.Args[0], args...)
	d.cmd.Dir = dir
	d.cmd.Env = append(os.Environ(), "PRONY_TEST_MAIN=1")
	if d.cmd.Stderr = d.stderr; d.stderr == nil {
		d.cmd.Stderr = os.Stderr
	}
	out, err := d.cmd.StdoutPipe()
	if err == nil {
		err = d.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.stop)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("it printed %q: %v", line, err)
	}
	d.link, _, _ = strings.Cut(line, " ")
	d.base = regexp.MustCompile(`^http://[^/]+`).FindString(d.link)
}

// stop ends the server with SIGTERM.
func (d *desk) stop() {
	if d.cmd.ProcessState != nil {
		return
	}
	_ = d.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	_ = d.cmd.Wait()
}

// ask returns status, header and body of a response.
func (d *desk) ask(method, path, body string, header ...string) (int, http.Header, string) {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), method, d.base+path,
		strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	answer, err := client.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(text)
}

// raw sends bytes as they are, and returns the first line of the response.
func (d *desk) raw(text string) string {
	d.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(d.base, "http://"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(testsets.Patience)) // a socket takes one
	_, _ = io.WriteString(conn, text)                       // it may be refused before the end
	line, _ := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line)
}

// Pages of other origins get nothing, by whatever name they reach the server, and change nothing.
func TestServeAttacks(t *testing.T) {
	d := serving(t)
	const json, kind = "application/json", "Content-Type"
	const run = "/api/v1/runs/" + monday
	check := func(want int, method, path string, header ...string) {
		t.Helper()
		if got, _, text := d.ask(method, path, "{}", header...); got != want {
			t.Errorf("%s %s %q: %d %.200s, want %d", method, path, header, got, text, want)
		}
	}
	check(200, "GET", "/")
	check(200, "GET", "/api/v1/runs")
	check(421, "GET", "/api/v1/runs", "Host", "evil.example") // DNS rebinding
	check(421, "DELETE", run, "Host", "evil.example:7766", kind, json)
	check(403, "DELETE", run, "Origin", "http://evil.example", kind, json)
	check(403, "GET", "/api/v1/runs", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors")
	check(403, "PUT", run+"/labels", "Sec-Fetch-Site", "same-site", kind, json)
	for _, form := range []string{"", "text/plain", "application/x-www-form-urlencoded",
		"multipart/form-data; boundary=x", "application/jsonp", "text/plain; application/json"} {
		check(415, "DELETE", run, kind, form)
		check(415, "PUT", run+"/labels", kind, form)
		check(415, "POST", run+"/stop", kind, form)
		for _, path := range []string{"", "/requests", "/loads"} {
			check(415, "POST", "/api/v1/service"+path, kind, form)
		}
		check(415, "DELETE", "/api/v1/service", kind, form)
	}
	check(403, "POST", "/api/v1/service", "Origin", "http://evil.example", kind, json)
	check(403, "POST", "/api/v1/service/requests", "Sec-Fetch-Site", "same-site", kind, json)
	// GET changes nothing, and files are reached only by identifiers.
	for _, path := range []string{run + "/labels", run + "/stop", "/api/v1/service/requests",
		"/api/v1/service/loads"} {
		if got, _, _ := d.ask("GET", path, ""); got != 404 && got != 405 {
			t.Errorf("GET %s: %d", path, got)
		}
	}
	for _, path := range []string{"/api/v1/runs/..%2f..%2fetc", "/api/v1/runs/%2e%2e",
		"/etc/passwd",
		"/..%2findex.html", "/api/v1/runs/.prony", "/api/v1/runs/" + monday + "%00", "/run.json",
		run + "/logs/..%2Frun.json", run + "/logs/%2e%2e", "/api/v1/suites/..%2f..%2fgo.mod"} {
		check(404, "GET", path)
	}
	for path, want := range map[string]string{"/../../etc/passwd": "301|307|400|404",
		"//etc/passwd": "301|307|404", "/api/v1/runs/../../../etc/passwd": "301|307|404"} {
		line := d.raw("GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
		if !regexp.MustCompile(`^HTTP/1.1 (` + want + `) `).MatchString(line) {
			t.Errorf("%s: %s", path, line)
		}
	}
	if _, err := os.Stat(filepath.Join(d.dir, monday, "run.json")); err != nil {
		t.Errorf("the run: %v", err)
	}
}

// A folder of somebody else can name any process as its lab, also this program's. Such a run is not
// under way, and the process gets no signal.
func TestServeStopsNobodyElse(t *testing.T) {
	d := serving(t)
	other := exec.Command("sleep", "1000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- other.Wait() }()
	defer func() { _ = other.Process.Kill() }() // it may have been
	for pid, want := range map[int]string{other.Process.Pid: "is not running",
		d.cmd.Process.Pid: "is not running", os.Getpid(): "does not write it"} {
		line := fmt.Sprintf(`{"seq":1,"kind":"begin","pid":%d,"processStart":%q}`, pid,
			cgroup.Born(pid))
		file := filepath.Join(d.dir, monday, "progress.ndjson")
		if err := os.WriteFile(file, []byte(line+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		status, _, text := d.ask("POST", "/api/v1/runs/"+monday+"/stop", "{}", "Content-Type",
			"application/json")
		if status != http.StatusConflict || !strings.Contains(text, want) {
			t.Errorf("it answers %d %s", status, text)
		}
	}
	select {
	case err := <-ended:
		t.Errorf("somebody else's process was ended: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
}

// All input is limited.
func TestServeBounds(t *testing.T) {
	d := serving(t)
	const kind = "Content-Type"
	long := strings.Repeat("x", 1<<20)
	got, _, text := d.ask("PUT", "/api/v1/runs/"+monday+"/labels", `{"a":"`+long+`"}`, kind,
		"application/json")
	if got != http.StatusRequestEntityTooLarge {
		t.Errorf("a body of 1 MiB: %d %.200s", got, text)
	}
	line := d.raw("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + long + "\r\n\r\n")
	if !strings.HasPrefix(line, "HTTP/1.1 431") {
		t.Errorf("a head of 1 MiB: %s", line)
	}
	// Silent clients use up places, but leave some for others.
	for range 60 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(d.base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: ")
	}
	if got, _, _ := d.ask("GET", "/", ""); got != 200 {
		t.Errorf("beside many that say nothing: %d", got)
	}
}

// Scripts from elsewhere and inline do not run; output of services is text.
func TestServePolicy(t *testing.T) {
	d := serving(t)
	const evil = `<script>alert(1)</script>`
	logs := filepath.Join(d.dir, monday, "logs")
	err := os.MkdirAll(logs, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(logs, "b1.log"), []byte(evil), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/": "default-src 'none'", "/api/v1/runs": "default-src 'none'",
		"/api/v1/runs/" + monday + "/page":    "sandbox allow-scripts",
		"/api/v1/runs/" + monday + "/logs/b1": "sandbox; default-src 'none'",
	} {
		got, head, text := d.ask("GET", path, "")
		policy := head.Get("Content-Security-Policy")
		if got != 200 || !strings.Contains(policy, want) || strings.Contains(policy, "unsafe") ||
			head.Get("X-Content-Type-Options") != "nosniff" ||
			strings.Contains(policy, "allow-same-origin") {
			t.Errorf("%s: %d, policy %q", path, got, policy)
		}
		if html := strings.HasPrefix(head.Get("Content-Type"), "text/html"); html &&
			strings.Contains(text, evil) {
			t.Errorf("%s shows what a service wrote as a page", path)
		}
	}
	inline := regexp.MustCompile(`(?i)<script(>|[^>]*>\s*[^\s<])|<style|\son\w+=|style=`)
	if _, _, text := d.ask("GET", "/", ""); inline.MatchString(text) {
		t.Errorf("the index has something inline: %s", text)
	}
}

// On other addresses than 127.0.0.1, every request needs the token.
func TestServeToken(t *testing.T) {
	d := serving(t, "--listen", "0.0.0.0:0")
	d.base = strings.Replace(d.base, "[::]", "127.0.0.1", 1)
	d.base = strings.Replace(d.base, "0.0.0.0", "127.0.0.1", 1)
	_, token, ok := strings.Cut(d.link, "/?token=")
	if !ok || len(token) < 26 {
		t.Fatalf("it printed %q", d.link)
	}
	check := func(want int, path string, header ...string) http.Header {
		t.Helper()
		got, head, text := d.ask("GET", path, "", header...)
		if got != want {
			t.Errorf("%s %q: %d %.200s, want %d", path, header, got, text, want)
		}
		return head
	}
	const auth = "Authorization"
	for _, path := range []string{"/", "/api/v1/runs", "/api/v1/openapi.yaml", "/none",
		"/?token=wrong", "/api/v1/runs?token=" + token} {
		check(401, path)
	}
	check(401, "/", auth, "Bearer ")
	check(401, "/", auth, "Bearer "+token[1:])
	check(401, "/", auth, "Basic "+token)
	check(401, "/", auth, "Bearer x", "Cookie", "prony="+token)
	check(401, "/", "Cookie", "prony=x")
	check(200, "/api/v1/runs", auth, "Bearer "+token)
	head := check(303, "/?token="+token)
	kept := head.Get("Set-Cookie")
	if !strings.Contains(kept, "HttpOnly") || !strings.Contains(kept, "SameSite=Strict") ||
		head.Get("Location") != "/" {
		t.Errorf("the link sets %q and leads to %q", kept, head.Get("Location"))
	}
	kept, _, _ = strings.Cut(kept, ";")
	check(200, "/api/v1/runs", "Cookie", kept)
	check(421, "/api/v1/runs", "Cookie", kept, "Host", "evil.example")
}

// A given token is required on any address, and never printed.
func TestServeGivenToken(t *testing.T) {
	const token = "a-token-of-a-secret-of-a-cluster"
	t.Setenv(tokenName, token)
	d := serving(t)
	if strings.Contains(d.link, "token") {
		t.Errorf("it printed %q", d.link)
	}
	if got, _, _ := d.ask("GET", "/api/v1/runs", ""); got != 401 {
		t.Errorf("without the token: %d", got)
	}
	got, _, text := d.ask("GET", "/api/v1/runs", "", "Authorization", "Bearer "+token)
	if got != 200 {
		t.Errorf("with it: %d %s", got, text)
	}
	t.Setenv(tokenName, token[:25])
	_, stderr, exit := really("serve", d.dir)
	if exit != cli.Misused || !strings.Contains(stderr, "25 characters") ||
		strings.Contains(stderr, token[:25]) {
		t.Errorf("a short one: exit %d, %s", exit, stderr)
	}
}

// The server uses only the load's cores at a low priority; invalid arguments are refused.
func TestServeStandsAside(t *testing.T) {
	d := serving(t)
	cores, err := host.Cores()
	if err != nil {
		t.Fatal(err)
	}
	if got, _, text := d.ask("GET", "/api/v1/runs", ""); got != 200 {
		t.Fatalf("%d %s", got, text)
	}
	if layout, err := host.Divide(cores, 1); err == nil && !layout.Shared {
		pid := fmt.Sprint(d.cmd.Process.Pid)
		tasks, err := os.ReadDir(filepath.Join("/proc", pid, "task"))
		if err != nil {
			t.Fatal(err)
		}
		own := 0
		for _, task := range tasks {
			status := cgroup.Value(filepath.Join("/proc", pid, "task", task.Name()), "status")
			on := host.Field(status, "Cpus_allowed_list")
			stat := cgroup.Value(filepath.Join("/proc", pid, "task", task.Name()), "stat")
			fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
			if on == fmt.Sprint(layout.Load[0]) && fields[16] == "10" || len(layout.Load) > 1 {
				own++
			}
		}
		if own < len(tasks)-1 { // one thread starts processes, and keeps its settings
			t.Errorf("%d of %d threads stand aside", own, len(tasks))
		}
	}
	for line, want := range map[string]string{"serve --listen x": "must be an address and a port",
		"serve --listen localhost:80": "must be an address", "serve a b": "expected prony serve",
		"serve main_test.go": "does not exist"} {
		if _, stderr, exit := say(t, mock{}, strings.Fields(line)...); exit == 0 ||
			!strings.Contains(stderr, want) {
			t.Errorf("%s: %d %s", line, exit, stderr)
		}
	}
	// It ends cleanly.
	begin := time.Now()
	if err := d.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Wait(); err != nil || time.Since(begin) > testsets.Patience {
		t.Errorf("it ended with %v after %v", err, time.Since(begin))
	}
}
