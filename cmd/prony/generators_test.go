package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/load/pace"
	"prony.example/record"
)

// counting is a server that counts its requests.
func counting(t *testing.T) (url string, asked *atomic.Int64) {
	t.Helper()
	return countingSome(t, func(*http.Request) bool { return true })
}

// countingSome is a server that counts some of its requests.
func countingSome(t *testing.T, counts func(*http.Request) bool) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if counts(r) {
			asked.Add(1)
		}
		if as := r.Header.Get("Authorization"); as != "" && as != "Bearer sesame" {
			w.WriteHeader(http.StatusForbidden)
		}
		io.WriteString(w, "ok") //nolint:errcheck // the client reports failures
	}))
	t.Cleanup(s.Close)
	return s.URL + "/", asked
}

// loadPrinted parses the JSON of a load.
func loadPrinted(t *testing.T, stdout string) *record.Load {
	t.Helper()
	var out struct{ Load record.Load }
	if err := json.Unmarshal([]byte(stdout), &out); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	return &out.Load
}

// Several processes offer one schedule together: the arrivals are those of one process, and their
// counts add up to the server's.
func TestGenerators(t *testing.T) {
	testsets.Live(t)
	t.Setenv("TOKEN", "sesame")
	schedule, err := pace.Schedule{Arrivals: pace.Poisson, Rate: pace.Flat(300)}.Process(5)
	if err != nil {
		t.Fatal(err)
	}
	want := pace.Hash(schedule, 5e8)
	for _, number := range []string{"", "2"} {
		url, asked := counting(t)
		args := []string{"load", url, "-r", "300", "-d", "400ms", "--lead-in", "100ms", "-c", "8",
			"--seed", "5", "-H", "Authorization: Bearer ${TOKEN}", "--json", "--view", "none", "-x"}
		if number != "" {
			args = append(args, "--generators", number)
		}
		stdout, stderr, exit := really(args...)
		if unspoilt(exit) != cli.Fine {
			t.Fatalf("%s generators: exit %d: %s", number, exit, stderr)
		}
		l := loadPrinted(t, stdout)
		if l.TraceHash != want || l.Scheduled != l.Answered || l.ResponseTime.Count != l.Answered {
			t.Errorf("%s generators: hash %s, %d due, %d answered; want hash %s", number,
				l.TraceHash, l.Scheduled, l.Answered, want)
		}
		if number == "" {
			if strings.Contains(stdout, "generators") {
				t.Error("a load from one process tells of generators")
			}
			continue
		}
		sent := int64(0)
		for _, g := range l.Generators {
			if sent += g.Sent; g.Fault != "" || !strings.Contains(g.Name, "/") {
				t.Errorf("generator %+v", g)
			}
		}
		if sent != asked.Load() || len(l.Generators) != 2 || l.Threads != 2 {
			t.Errorf("%d generators sent %d requests, the server had %d", len(l.Generators), sent,
				asked.Load())
		}
		has(t, "what is shown", stderr, " generate --child --of 127.0.0.1:", " --index 1\n")
		if strings.Contains(stderr+stdout, "sesame") || strings.Contains(stderr, keyName) {
			t.Errorf("a secret is shown: %s", stderr)
		}
	}
}

// Invalid flags are reported before anything begins.
func TestGeneratorsUsage(t *testing.T) {
	for _, row := range []struct{ args, want string }{
		{"load URL --generators 0", "--generators must be at least 1"},
		{"load URL --listen :0", "set it to the number of workers elsewhere"},
		{"load URL --generators 2 --listen :0", "--listen needs --key"},
		{"load URL --generators 2 --key x", "--key and --identity need --listen"},
		{"load URL --generators 2 --identity x", "--key and --identity need --listen"},
		{"load URL --generators 2 --listen :0 --key x --identity x", "exclude each other"},
		{"load URL --generators 999 -c 999", "at most 256"},
		{"load URL --generators 9 -c 8", "8 connections are too few for 9 generators"},
		{"load URL --generators 2 --cores 0", "a multiple of 2"},
		{"load URL --generators 2 --ceiling", "of one process"},
		{"generate --index 0", "--of is missing: set it to the address of the coordinator"},
		{"generate --of 127.0.0.1:9", "--index is missing"},
		{"generate --of 127.0.0.1:9 --index 0", "the key is invalid"},
		{"generate --of 127.0.0.1:9 --index 0 --wait -1s", "--wait must not be negative"},
	} {
		args := strings.Fields(strings.ReplaceAll(row.args, "URL", "http://127.0.0.1:9/"))
		stdout, stderr, exit := really(args...)
		if exit != cli.Misused || !strings.Contains(stderr, row.want) {
			t.Errorf("%s: exit %d, %s%s; want %q", row.args, exit, stdout, stderr, row.want)
		}
	}
}

// labProcess is prony load as a process of its own.
type labProcess struct {
	*exec.Cmd
	t    *testing.T
	out  bytes.Buffer
	told *bufio.Scanner
}

func startLab(t *testing.T, args ...string) *labProcess {
	t.Helper()
	p := &labProcess{t: t}
	p.Cmd = exec.Command(os.Args[0], append([]string{"load"}, args...)...)
	p.Env = append(os.Environ(), "PRONY_TEST_MAIN=1")
	p.Stdout = &p.out
	errs, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.told = bufio.NewScanner(errs)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Process.Kill() }) //nolint:errcheck // it may have ended
	return p
}

// children waits until its generators are this many, and returns them.
func (p *labProcess) children(n int) []int {
	p.t.Helper()
	var all []int
	testsets.Eventually(p.t, fmt.Sprint(n, " generators"), func() bool {
		all = nil
		names, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.Process.Pid))
		if err != nil {
			p.t.Fatal(err)
		}
		for _, name := range names { // of each thread that started some
			b, err := os.ReadFile(name)
			if err != nil {
				continue // it has ended
			}
			for text := range strings.FieldsSeq(string(b)) {
				if pid, err := strconv.Atoi(text); err == nil {
					all = append(all, pid)
				}
			}
		}
		return len(all) == n
	})
	return all
}

// hasEnded reports whether a process has ended, even if its parent has not waited for it.
func hasEnded(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, state, _ := strings.Cut(string(b), ") ")
	return strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X")
}

// A load whose generators have all ended is INVALID.
func TestGeneratorsAllEnd(t *testing.T) {
	testsets.Once(t, "a load whose generators all die", testsets.Needs{})
	url, asked := counting(t)
	p := startLab(t, url, "-r", "400", "-c", "4", "--generators", "2", "-d", "1m", "--view", "none")
	all := p.children(2)
	testsets.Eventually(t, "requests", func() bool { return asked.Load() > 100 })
	for _, pid := range all {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	said := ""
	for p.told.Scan() {
		said += p.told.Text() + "\n"
	}
	err := p.Wait()
	has(t, "what is said", said, "prony: INVALID: load "+url+": no generator reported its "+
		"measurements; generator 0 (", " disconnected ")
	if p.ProcessState.ExitCode() != cli.Invalid {
		t.Errorf("%v: %s", err, said)
	}
}

// However a coordinator or one of its generators ends, nothing of the load remains, and no load
// with a missing part is VALID.
func TestGeneratorsEnd(t *testing.T) {
	testsets.Once(t, "generators that die", testsets.Needs{})
	url, asked := counting(t)
	under := func(p *labProcess, n int) []int { // way
		t.Helper()
		all := p.children(n)
		before := asked.Load()
		testsets.Eventually(t, "requests", func() bool { return asked.Load() > before+100 })
		time.Sleep(1500 * time.Millisecond) // until something was reported
		return all
	}
	args := []string{url, "-r", "400", "-c", "9", "--generators", "3", "--json", "--view", "none"}
	for _, row := range []struct {
		sign syscall.Signal
		want string
	}{{syscall.SIGKILL, " disconnected "}, {syscall.SIGTERM, " was ended: terminated "}} {
		p := startLab(t, append(args, "-d", "4s")...)
		all := under(p, 3)
		if err := syscall.Kill(all[1], row.sign); err != nil {
			t.Fatal(err)
		}
		err := p.Wait()
		l := loadPrinted(t, p.out.String())
		fault := ""
		for _, g := range l.Generators {
			if fault += g.Fault; g.Fault != "" && !strings.HasSuffix(g.Name, "/"+itoa(all[1])) {
				t.Errorf("%s has the fault %s", g.Name, g.Fault)
			}
		}
		if p.ProcessState.ExitCode() != cli.Invalid || !strings.Contains(" "+fault, row.want) ||
			l.Answered == 0 {
			t.Errorf("%v: %v, fault %q, %d answered", row.sign, err, fault, l.Answered)
		}
	}
	p := startLab(t, append(args, "-d", "1m")...)
	all := under(p, 3)
	p.Process.Kill() //nolint:errcheck // the process is being waited for
	p.Wait()         //nolint:errcheck // killed above
	for _, pid := range all {
		testsets.Eventually(t, "the end of a generator whose lab was killed", func() bool {
			return hasEnded(pid)
		})
	}
	p = startLab(t, append(args, "-d", "1m")...)
	all = under(p, 3)
	p.Process.Signal(os.Interrupt) //nolint:errcheck // the process is being waited for
	p.Wait()                       //nolint:errcheck // interrupted above
	if l := loadPrinted(t, p.out.String()); l.Answered == 0 || l.WindowNs > 30e9 {
		t.Errorf("interrupted: %d answered in %v", l.Answered, time.Duration(l.WindowNs))
	}
	for _, pid := range all {
		if !hasEnded(pid) {
			t.Errorf("generator %d is left", pid)
		}
	}
}

// A coordinator that is stopped for longer than its limit of a generator's silence blames itself,
// and has all measurements of the generators.
func TestLabStandsStill(t *testing.T) {
	testsets.Once(t, "a lab that stands still", testsets.Needs{})
	url, asked := counting(t)
	p := startLab(t, url, "-r", "100", "-c", "4", "--generators", "2", "--json", "--view", "none",
		"-d", "9s")
	testsets.Eventually(t, "requests", func() bool { return asked.Load() > 50 })
	for _, sign := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := p.Process.Signal(sign); err != nil {
			t.Fatal(err)
		}
		if sign == syscall.SIGSTOP {
			time.Sleep(6500 * time.Millisecond)
		}
	}
	said := ""
	for p.told.Scan() {
		said += p.told.Text() + "\n"
	}
	p.Wait() //nolint:errcheck // a busy machine makes it INVALID
	has(t, "its output", said, "the coordinator stalled for ", " after the start of the load")
	_, long, _ := strings.Cut(said, "the coordinator stalled for ")
	stalled := 0.0
	if _, err := fmt.Sscanf(long, "%f s", &stalled); err != nil || stalled < 6 {
		t.Errorf("it stalled for %.9q, want 6 s at least: %v", long, err)
	}
	l := loadPrinted(t, p.out.String())
	if len(l.Generators) != 2 || l.Scheduled != l.Answered || l.WindowNs != 9e9 ||
		l.Generators[0].Sent+l.Generators[1].Sent != asked.Load() {
		t.Errorf("%d due, %d answered in %v, the server had %d: %+v", l.Scheduled, l.Answered,
			time.Duration(l.WindowNs), asked.Load(), l.Generators)
	}
	for _, g := range l.Generators {
		if g.Fault != "" {
			t.Errorf("%s %s", g.Name, g.Fault)
		}
	}
}

// Generators that are started elsewhere read the key from a file.
func TestGeneratorsElsewhere(t *testing.T) {
	testsets.Once(t, "generators that are started elsewhere", testsets.Needs{})
	url, asked := counting(t)
	key := filepath.Join(t.TempDir(), "key")
	p := startLab(t, url, "-r", "300", "-d", "1s", "-c", "8", "--generators", "2", "--json",
		"--listen", "127.0.0.1:0", "--key", key, "--view", "none")
	at := ""
	for at == "" && p.told.Scan() {
		if _, rest, ok := strings.Cut(p.told.Text(), "waiting for 2 generators at "); ok {
			at, _, _ = strings.Cut(rest, ": ")
		}
	}
	info, err := os.Stat(key)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the key: %v, %v", info, err)
	}
	text, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	wrong := exec.Command(os.Args[0], "generate", "--of", at, "--index", "0")
	wrong.Stdin = strings.NewReader("0" + string(text[1:]))
	if text[0] == '0' {
		wrong.Stdin = strings.NewReader("1" + string(text[1:]))
	}
	if said, err := wrong.CombinedOutput(); err == nil ||
		!strings.Contains(string(said), "token is not the token of this load") {
		t.Errorf("another token: %v, %s", err, said)
	}
	for i := range 2 {
		g := exec.Command(os.Args[0], "generate", "--of", at, "--index", itoa(i), "--name",
			fmt.Sprint("elsewhere", i))
		g.Env = append(os.Environ(), keyName+"="+strings.TrimSpace(string(text)))
		if err := g.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := g.Wait(); err != nil {
				t.Errorf("generator %d: %v", i, err)
			}
		}()
	}
	for p.told.Scan() {
		t.Log(p.told.Text())
	}
	p.Wait() //nolint:errcheck // a busy machine makes it INVALID
	l := loadPrinted(t, p.out.String())
	if len(l.Generators) != 2 || l.Generators[1].Name != "elsewhere1" {
		t.Fatalf("it was offered by %+v", l.Generators)
	}
	if sent := l.Generators[0].Sent + l.Generators[1].Sent; l.Scheduled != l.Answered ||
		sent != asked.Load() {
		t.Errorf("%d due, %d answered, %d sent; the server had %d", l.Scheduled, l.Answered, sent,
			asked.Load())
	}
	if exists(key) {
		t.Error("the key is left")
	}
}
