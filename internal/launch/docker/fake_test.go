package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/system"
	"golang.org/x/sys/unix"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch"
)

// fakeEngine answers like a working engine, except for calls that a test makes fail.
type fakeEngine struct {
	socket string
	server *http.Server
	info   system.Info
	api    string

	mu    sync.Mutex
	fails map[string]http.HandlerFunc // by method and pattern of the path
	calls []string
	end   chan struct{} // closed: the container has ended
	pid   int
}

var version = regexp.MustCompile(`^/v[0-9.]+`)

func startFake(t *testing.T) *fakeEngine {
	t.Helper()
	f := &fakeEngine{socket: filepath.Join(t.TempDir(), "engine"), api: "1.41",
		info:  system.Info{OSType: "linux", CgroupDriver: "systemd", CgroupVersion: "2"},
		fails: map[string]http.HandlerFunc{}, end: make(chan struct{})}
	l, err := net.Listen("unix", f.socket)
	if err != nil {
		t.Fatal(err)
	}
	f.server = &http.Server{Handler: f}
	go f.server.Serve(l) //nolint:errcheck // it always ends with ErrServerClosed
	t.Cleanup(func() { f.server.Close() })
	return f
}

// stop stops the engine during all calls.
func (f *fakeEngine) stop() { f.server.Close() }

func (f *fakeEngine) fail(call string, with http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails[call] = with
}

func (f *fakeEngine) heard() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

func refuse(status int, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, "{\"message\": %q}", message)
	}
}

func (f *fakeEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := version.ReplaceAllString(r.URL.Path, "")
	if path != r.URL.Path && !strings.HasPrefix(r.URL.Path, "/v"+f.api+"/") {
		refuse(http.StatusBadRequest, "client version "+r.URL.Path+" is not "+f.api)(w, r)
		return
	}
	path = regexp.MustCompile(`prony-[0-9-]+|id1|img`).ReplaceAllString(path, "X")
	call := r.Method + " " + path
	f.mu.Lock()
	f.calls = append(f.calls, call)
	fail := f.fails[call]
	f.mu.Unlock()
	if fail != nil {
		fail(w, r)
		return
	}
	w.Header().Set("Api-Version", f.api)
	answer := map[string]any{
		"GET /info":                f.info,
		"GET /containers/json":     []any{},
		"GET /networks":            []any{},
		"GET /volumes":             map[string]any{},
		"GET /images/X/json":       map[string]any{},
		"POST /containers/create":  map[string]any{"Id": "id1"},
		"POST /networks/create":    map[string]any{"Id": "id1"},
		"GET /containers/X/json":   map[string]any{"State": container.State{Pid: f.pid}},
		"POST /containers/X/start": nil, "POST /containers/X/kill": nil,
		"DELETE /containers/X": nil, "DELETE /networks/X": nil,
	}
	body, known := answer[call]
	switch {
	case call == "POST /containers/X/wait":
		f.wait(w, r.Context())
	case call == "POST /containers/X/attach":
		f.attach(w)
	case strings.HasSuffix(path, "/_ping"):
		w.WriteHeader(http.StatusOK)
	case !known:
		refuse(http.StatusNotImplemented, "no such call: "+call)(w, r)
	case body == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		_ = json.NewEncoder(w).Encode(body) // the client may have gone
	}
}

func (f *fakeEngine) wait(w http.ResponseWriter, ctx context.Context) {
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	select {
	case <-f.end:
		fmt.Fprint(w, "{\"StatusCode\": 3}")
	case <-ctx.Done():
	}
}

func (f *fakeEngine) attach(w http.ResponseWriter) {
	c, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = fmt.Fprint(c, "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
	c.Close()
}

func fakeSpec(t *testing.T) launch.Spec {
	return launch.Spec{Name: "t", Image: "img", Args: []string{"x"},
		LogFile: filepath.Join(t.TempDir(), "log")}
}

// An unusable engine is refused, with the cause and a hint.
func TestUnusableEngine(t *testing.T) {
	check := func(what, want string, prepare func(*fakeEngine) string) {
		t.Helper()
		f := startFake(t)
		socket := prepare(f)
		l, _, err := New(t.Context(), Options{Socket: socket, Host: true})
		if err == nil {
			l.Close()
		}
		if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("%s: error is %v, want %s", what, err, want)
		}
	}
	check("absent", `^reach the Docker engine: dial unix .*none: connect: no such file or `+
		`directory; no engine was found: install Docker, or start it`,
		func(f *fakeEngine) string { return f.socket + "none" })
	check("stopped", `connect: connection refused; the engine has stopped: start it`,
		func(f *fakeEngine) string {
			stale(t, f.socket+"2")
			return f.socket + "2"
		})
	check("too "+
		"old", `the engine has version "1.24" of the API, but Prony needs 1.40`,
		func(f *fakeEngine) string { f.api = "1.24"; return f.socket })
	check("rootless", `it is rootless.*; use the system's engine`, func(f *fakeEngine) string {
		f.info.SecurityOptions = []string{"name=seccomp", "name=rootless"}
		return f.socket
	})
	check("Windows", `it runs containers of windows`, func(f *fakeEngine) string {
		f.info.OSType = "windows"
		return f.socket
	})
	check("gone", `read the Docker engine's properties: .*EOF; the engine stopped during a request`,
		func(f *fakeEngine) string {
			f.fail("GET /info", hangUp)
			return f.socket
		})
	check("no engine at all", `reach the Docker engine at .*: .*teapot`,
		func(f *fakeEngine) string {
			f.fail("GET /_ping", refuse(http.StatusTeapot, "teapot"))
			return f.socket
		})
}

func hangUp(w http.ResponseWriter, _ *http.Request) {
	c, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	c.Close()
}

// stale leaves a socket without a listener.
func stale(t *testing.T, path string) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
}

// The error for a user without access to the socket has a hint. Root has access, so the test
// changes the user of one thread, which ends with it.
func TestForbiddenEngine(t *testing.T) {
	f := startFake(t)
	if err := unix.Chmod(f.socket, 0o600); err != nil {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Getuid() == 0 {
			if _, err := unix.SetfsuidRetUid(65534); err != nil {
				got <- err
				return
			}
		} else if err := unix.Chmod(f.socket, 0); err != nil {
			got <- err
			return
		}
		_, _, err := New(context.Background(), Options{Socket: f.socket})
		got <- err
	}()
	const want = "permission denied; this user may not use the engine: join the group docker"
	if err := <-got; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error is %v, want %q", err, want)
	}
}

func TestSocketOf(t *testing.T) {
	for _, row := range []struct{ path, env, want, err string }{
		{want: "/var/run/docker.sock"},
		{env: "unix:///run/user/1/docker.sock", want: "/run/user/1/docker.sock"},
		{path: "/x", env: "tcp://far:2375", want: "/x"},
		{env: "tcp://far:2375",
			err: "DOCKER_HOST is tcp://far:2375, but Prony cannot measure containers on another"},
		{env: "ssh://me@far", err: "unset DOCKER_HOST, or set it to unix:///var/run/docker.sock"},
	} {
		got, err := socketOf(row.path, row.env)
		if got != row.want || (err == nil) != (row.err == "") ||
			err != nil && !strings.Contains(err.Error(), row.err) {
			t.Errorf("%+v: %q, %v", row, got, err)
		}
	}
}

// A launch that the engine refuses fails with the engine's message, and everything made so far is
// removed.
func TestLaunchRefused(t *testing.T) {
	const full = "write /var/lib/docker/overlay2/x: no space left on device"
	for _, row := range []struct {
		call, want string
		with       http.HandlerFunc
		removed    bool
	}{
		{"POST /containers/create", `^launch t: create container prony(-\d+){3}: .*` + full,
			refuse(http.StatusInternalServerError, full), true},
		{"POST /containers/X/attach", `^launch t: attach to container prony-`,
			refuse(http.StatusInternalServerError, "x"), true},
		{"POST /containers/X/start", `^launch t: start container prony(-\d+){3}: .*` + full,
			refuse(http.StatusInternalServerError, full), true},
		{"POST /containers/X/start", `start container prony(-\d+){3}: .*EOF; the engine stopped ` +
			`during a request: start it again`, hangUp, true},
		{"GET /containers/X/json", `inspect container prony(-\d+){3}: .*x`,
			refuse(http.StatusInternalServerError, "x"), true},
		{"GET /images/X/json", `inspect image img: .*x`,
			refuse(http.StatusInternalServerError, "x"), false},
	} {
		f := startFake(t)
		l := launcher(t, Options{Socket: f.socket, Host: true})
		f.fail(row.call, row.with)
		f.fail("POST /containers/X/kill", func(w http.ResponseWriter, _ *http.Request) {
			f.fail("POST /containers/X/kill", nil)
			close(f.end)
			w.WriteHeader(http.StatusNoContent)
		})
		p, err := l.Launch(t.Context(), fakeSpec(t))
		if err == nil || !regexp.MustCompile(row.want).MatchString(err.Error()) {
			t.Errorf("%s: process %v, error %v, want %s", row.call, p, err, row.want)
		}
		if got := slices.Contains(f.heard(), "DELETE /containers/X"); got != row.removed {
			t.Errorf("%s: removed is %t, want %t", row.call, got, row.removed)
		}
	}
	f := startFake(t)
	f.fail("POST /networks/create", refuse(http.StatusForbidden, "no available network"))
	_, _, err := New(t.Context(), Options{Socket: f.socket})
	if err == nil || !regexp.MustCompile(`^create network prony(-\d+){3}: .*no available network`).
		MatchString(err.Error()) {
		t.Errorf("error is %v", err)
	}
}

// If the engine stops while a container runs, the wait for it ends with an error that names the
// engine, as does the failed removal.
func TestEngineStops(t *testing.T) {
	f := startFake(t)
	l, _, err := New(t.Context(), Options{Socket: f.socket, Host: true})
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.Launch(t.Context(), fakeSpec(t))
	if err != nil {
		t.Fatal(err)
	}
	f.stop()
	<-p.Exited()
	want := regexp.MustCompile(`^unknown, because waiting for container prony(-\d+){3} failed: ` +
		`.*EOF; the engine stopped during a request`)
	if !want.MatchString(p.Exit()) {
		t.Errorf("the process ended with %q, want %s", p.Exit(), want)
	}
	want = regexp.MustCompile(`^stop t: remove container prony(-\d+){3}: .*; no engine was found`)
	if err := p.Stop(time.Second); err == nil || !want.MatchString(err.Error()) {
		t.Errorf("stop says %v, want %s", err, want)
	}
	if err := l.Close(); err == nil || !strings.Contains(err.Error(), "remove container") {
		t.Errorf("close says %v, want what is left", err)
	}
}

// The process number from the engine must belong to the container on this machine.
func TestProcessIsNotHere(t *testing.T) {
	testsets.Whole(t, "waits")
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	check := func(what string, pid int, ended bool, want string) {
		f := startFake(t)
		l := launcher(t, Options{Socket: f.socket, Host: true})
		f.pid = pid
		f.fail("POST /containers/X/kill", func(http.ResponseWriter, *http.Request) {
			close(f.end)
		})
		if ended {
			close(f.end)
		}
		p, err := l.Launch(t.Context(), fakeSpec(t))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v, want %q", what, err, want)
		}
		if err != nil || want != "" {
			return
		}
		<-p.Exited()
		if p.Exit() != "exit status 3" || p.Main() != 0 || len(p.PIDs()) > 0 {
			t.Errorf("%s: it ended with %q, as process %d of %v", what, p.Exit(), p.Main(),
				p.PIDs())
		}
		if _, missing := p.Limits(); len(missing) > 0 {
			t.Errorf("%s: missing is %+v of no limits", what, missing)
		}
	}
	const here = "it is not visible, because the engine runs in a virtual machine, or Prony runs in"
	check("another process has its number", os.Getpid(), false, here)
	check("none has its number", dead.Process.Pid, false, here)
	check("it has ended", dead.Process.Pid, true, "")
	check("the engine has heard of the end", 0, true, "")
}

// A cancelled launch does not wait for an engine that hangs.
func TestHangingEngine(t *testing.T) {
	testsets.Whole(t, "waits")
	f := startFake(t)
	l := launcher(t, Options{Socket: f.socket, Host: true})
	ctx, cancel := context.WithCancel(t.Context())
	f.fail("POST /containers/create", func(http.ResponseWriter, *http.Request) {
		cancel()
		<-t.Context().Done()
	})
	_, err := l.Launch(ctx, fakeSpec(t))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want it cancelled", err)
	}
	if !slices.Contains(f.heard(), "DELETE /containers/X") {
		t.Error("the container that may be there was not removed")
	}
}

// A launch that is cancelled while the engine makes the container waits for the engine: a container
// that is removed too early would come back.
func TestCancelledWhileMade(t *testing.T) {
	f := startFake(t)
	l := launcher(t, Options{Socket: f.socket, Host: true})
	ctx, cancel := context.WithCancel(t.Context())
	f.fail("POST /containers/create", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then a server detects the client's end
		cancel()
		select {
		case <-r.Context().Done():
			t.Error("the launcher did not wait for the container that it had asked for")
		case <-time.After(100 * time.Millisecond): // the time that the engine takes
			fmt.Fprint(w, `{"Id": "id1"}`)
		}
	})
	if _, err := l.Launch(ctx, fakeSpec(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want it cancelled", err)
	}
	if calls := f.heard(); !slices.Contains(calls, "DELETE /containers/X") ||
		slices.Contains(calls, "POST /containers/X/start") {
		t.Errorf("it was started, or not removed: %q", calls)
	}
}

func TestIsRoot(t *testing.T) {
	for user, want := range map[string]bool{"": true, "root": true, "0": true, "0:0": true,
		"root:users": true, "00": true, "1001": false, "app": false, "1001:0": false} {
		if isRoot(user) != want {
			t.Errorf("%q is root: %t", user, !want)
		}
	}
}

// Removal waits for a container that another process removes; if the result is unknown, the error
// has both causes.
func TestRemovedByAnother(t *testing.T) {
	f := startFake(t)
	engine, err := connect(t.Context(), f.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	f.fail("DELETE /containers/X", func(w http.ResponseWriter, r *http.Request) {
		refuse(http.StatusConflict, "removal is in progress")(w, r)
		close(f.end)
	})
	if err := removeContainer(t.Context(), engine, "id1"); err != nil {
		t.Error(err)
	}
	f.fail("DELETE /containers/X", refuse(http.StatusConflict, "removal is in progress"))
	f.fail("POST /containers/X/wait", refuse(http.StatusInternalServerError, "it is lost"))
	err = removeContainer(t.Context(), engine, "id1")
	if err == nil || !regexp.MustCompile(`(?s)removal is in progress.*it is lost`).MatchString(
		err.Error()) {
		t.Errorf("error is %v, want both causes", err)
	}
}
