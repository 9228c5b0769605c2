package main

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch/process"
	"prony.example/internal/server"
)

// held waits until the target that a server holds is in a state.
func (d *desk) held(state string) (h server.Held) {
	d.t.Helper()
	for over := time.Now().Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		got, _, text := d.ask("GET", "/api/v1/service", "")
		if err := json.Unmarshal([]byte(text), &h); err != nil || got != 200 {
			d.t.Fatalf("%d %s, %v", got, text, err)
		}
		if h.State == state {
			return h
		}
		if time.Now().After(over) || state != "ended" && h.State == "ended" {
			d.t.Fatalf("it is %s, want %s", text, state)
		}
	}
}

// A target that is looked at from a browser is a real one under its limits: checked, asked, loaded,
// watched. It has the machine to itself, and ends when it is told to, and with the server even
// where that is killed.
func TestServeHolds(t *testing.T) {
	testsets.Once(
		t,
		"a service held from a page",
		testsets.Needs{Files: []string{"services/go-nethttp"}},
	)
	testsets.Cores(t)
	d := serving(t)
	post := func(want int, path, body string) string {
		t.Helper()
		got, _, text := d.ask("POST", "/api/v1"+path, body, "Content-Type", "application/json")
		if got != want {
			t.Fatalf("%s %s: %d %s, want %d", path, body, got, text, want)
		}
		return text
	}
	const target = `{"target":"go-nethttp","cpus":1,"memory":"256MiB"}`
	post(202, "/service", target)
	h := d.held("running")
	for over := time.Now().Add(time.Minute); len(h.Usage) == 0 && time.Now().Before(over); {
		h = d.held("running")
	}
	for _, c := range h.Cases {
		if c.State == server.Failed {
			t.Errorf("%s: %s", c.Name, c.Text)
		}
	}
	if len(h.Cases) < 20 || len(h.Paths) < 3 || len(h.Usage) == 0 || h.Usage[0].Memory < 1<<20 ||
		h.ReadyS <= 0 || os.Getuid() == 0 && len(h.InForce) == 0 {
		t.Errorf("what is held is %+v", h)
	}
	text := post(200, "/service/requests", `{"path":"/hello/virtual?key=1"}`)
	if !strings.Contains(text, `"status":200`) || !strings.Contains(text, `"Content-Type"`) {
		t.Errorf("it answers %s", text)
	}
	text = post(200, "/service/loads", `{"path":"/hello/virtual","connections":4,"seconds":1}`)
	var l server.Loaded
	if err := json.Unmarshal([]byte(text), &l); err != nil || l.Requests < 1000 || l.Errors != 0 {
		t.Errorf("a load came to %s, %v", text, err)
	}
	if text := post(409, "/runs", `{"targets":["go-nethttp"],"blocks":1}`); !strings.Contains(text,
		"measur") {
		t.Errorf("a run beside it: %s", text)
	}
	if got, _, text := d.ask("DELETE", "/api/v1/service", "{}", "Content-Type",
		"application/json"); got != 202 {
		t.Errorf("stop: %d %s", got, text)
	}
	d.held("ended")
	refused(t, h.URL)

	post(202, "/service", target)
	h = d.held("running")
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = d.cmd.Wait() // it was killed
	refused(t, h.URL)
	unheld(t)
}

// unheld waits until no lab is at work on the machine: what held a target ends shortly after it.
func unheld(t *testing.T) {
	t.Helper()
	for over := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		j, reaped, err := process.OpenJournal(process.DefaultDir())
		if err == nil {
			if len(reaped) > 0 {
				t.Errorf("the one before has left %q", reaped)
			}
			if err := j.Close(); err != nil {
				t.Error(err)
			}
			return
		}
		if !errors.Is(err, process.ErrBusy) || time.Now().After(over) {
			t.Fatal(err)
		}
	}
}

// refused waits until nobody listens at a URL any more.
func refused(t *testing.T, url string) {
	t.Helper()
	for over := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			return
		}
		_ = conn.Close() // it was only asked for
		if time.Now().After(over) {
			t.Fatalf("%s listens still", url)
		}
	}
}

// On the command line it says where the target listens and what its contracts say, holds it until
// Ctrl-C, which is a good end, and leaves nothing.
func TestStart(t *testing.T) {
	testsets.Cores(t)
	root := t.TempDir()
	furnish(t, root)
	out, err := os.Create(filepath.Join(root, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(os.Args[0], "--root", root, "start", "go-nethttp", "--cpus", "1")
	cmd.Env = append(os.Environ(), "PRONY_TEST_MAIN=1")
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	said := ""
	for over := time.After(3 * time.Minute); !strings.Contains(said, "Ctrl-C"); {
		select {
		case err := <-ended:
			t.Fatalf("it ends with %v, and says %q", err, said)
		case <-over:
			_ = cmd.Process.Signal(syscall.SIGTERM) // it goes on
			t.Fatalf("it says %q", said)
		case <-time.After(50 * time.Millisecond):
		}
		b, err := os.ReadFile(out.Name())
		if said = string(b); err != nil {
			t.Fatal(err)
		}
	}
	has(t, "start", said, "go-nethttp listens at http://127.0.0.1:", "limits", "hello: ",
		"as the contract says")
	_, url, _ := strings.Cut(said, "listens at ")
	url, _, _ = strings.Cut(url, ",")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("it ends with %v", err)
	}
	refused(t, url)
	for line, want := range map[string]string{"start none": "there is no target",
		"start go-nethttp --cpus 0": "want --cpus above 0", "start": "want prony start",
		"start go-nethttp --memory 1KiB": "1MiB or more"} {
		_, stderr, exit := say(t, mock{}, append(strings.Fields(line), "--root", root)...)
		if exit != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%s: %d %s", line, exit, stderr)
		}
	}
}
