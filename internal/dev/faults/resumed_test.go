package faults

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// brief are settings with which a trial takes a second or two.
const brief = " --measure 500ms --warmup 1s "

// A comparison of prony versus goes on with the command that its error names.
func TestInterruptedVersus(t *testing.T) {
	testsets.Once(t, "a comparison that is interrupted and resumed", programFiles)
	for i, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			if i > 0 {
				testsets.Long(t, "comparisons that other signals end", programFiles)
			}
			s := newScene(t)
			s.furnish("SERVICE")
			p := s.begin("", s.arguments("versus SERVICE --get /hello --blocks 2 "+
				"--slices 500ms"+brief+"--out OUT")...)
			p.bound = 3 * within
			p.run(t)
			s.begun("OUT")
			time.Sleep(4 * time.Second)
			_ = syscall.Kill(p.cmd.Process.Pid, sig) // it may have ended
			first := p.wait(t)
			if sig != syscall.SIGKILL && !strings.Contains(first.stderr,
				"; continue with prony run --resume "+s.path("OUT")+"\n") {
				t.Errorf("it does not say how it goes on: %s", first.stderr)
			}
			s.resumed("OUT", 4, sig == syscall.SIGKILL, first)
		})
	}
}

// A comparison whose command line had a credential is not resumed, because the line is not stored
// as it was.
func TestVersusWithCredential(t *testing.T) {
	testsets.Once(t, "a comparison that cannot be resumed", programFiles)
	s := newScene(t)
	s.furnish("SERVICE")
	p := s.begin("", s.arguments("versus SERVICE --get /hello -H 'Authorization: Bearer abc' "+
		"--blocks 2"+brief+"--out OUT")...)
	p.run(t)
	s.begun("OUT")
	_ = syscall.Kill(p.cmd.Process.Pid, syscall.SIGINT)
	p.wait(t)
	e := s.try("", s.arguments("run --resume OUT")...)
	e.refused(t, 1)
	if !strings.Contains(e.stderr, "had a password or a credential, which is not stored; start a "+
		"new run, with the credential as ${NAME} of an environment variable") {
		t.Errorf("it says %s", e.stderr)
	}
}

// reproduces matches the line of a report that repeats its run.
var reproduces = regexp.MustCompile(`(?m)^ *reproduce +(prony .*)$`)

// Every line that a result prints to repeat it runs as it is printed, also beside the results of
// the first time.
func TestReproduceLines(t *testing.T) {
	testsets.Once(t, "lines that repeat a run", programFiles)
	more := testsets.More(t, programFiles)
	for i, row := range []struct{ args, in string }{
		{"run --quick ROOT/suites/canonical.yaml --targets go-two --blocks 1" + brief + "--out OUT",
			"root"},
		{"versus SERVICE --get /hello --aa=false --blocks 1" + brief + "--out OUT", ""},
		{"--root ROOT run --targets go-two --aa --blocks 1" + brief + "--out=OUT", ""},
		{"run --blocks 1" + brief, "project"},
		{"run second --blocks 1" + brief + "--out OUT", "project"},
		{"load URL -n 10 -c 1 --save=OUT", ""},
		{"load URL -r 200 -d 100ms --save-trace OUT", ""},
		{"rain URL -n 10 -c 1 --into OUT", ""},
		{"capacity URL --slo p99<1s --budget 1s --window 100ms", ""},
	} {
		if !more && i%8 != 0 {
			continue
		}
		t.Run(row.args, func(t *testing.T) {
			s := newScene(t)
			s.furnish(row.args + " go-two")
			s.put("project/prony.yaml", "targets: {app: {command: '"+program(t, "prony")+
				" truth fixed --port {port}'}}\nrequests: [{request: GET /}]\n"+
				"suites: {second: {requests: [{request: GET /x}]}}\n")
			try := func(args ...string) ended {
				p := s.begin("", args...)
				p.cmd.Dir = s.path(row.in)
				p.bound = 2 * within
				p.run(t)
				return p.wait(t)
			}
			e := try(s.arguments(row.args)...)
			line := reproduces.FindStringSubmatch(e.stdout)
			if line == nil || e.code != 0 && e.code != 4 {
				t.Fatalf("exit %d: %s%s", e.code, e.stdout, e.stderr)
			}
			again := s.begin("")
			again.cmd.Path, again.cmd.Args = "/bin/sh", []string{"sh", "-c", line[1]}
			again.cmd.Dir, again.bound = s.path(row.in), 2*within
			again.cmd.Env = append(again.cmd.Env, "PATH="+filepath.Dir(program(t, "prony"))+":"+
				os.Getenv("PATH"))
			again.run(t)
			if e := again.wait(t); e.code != 0 && e.code != 4 {
				t.Errorf("%s\nends with exit %d: %s", line[1], e.code, e.stderr)
			}
		})
	}
}

// A run that is resumed and interrupted again, also while it builds, keeps its good records.
func TestInterruptedResumption(t *testing.T) {
	testsets.Long(t, "a resumed run that is interrupted", programFiles)
	s := newScene(t)
	s.furnish("go-two")
	const line = "--root ROOT run --targets go-two --blocks 4 --interleave blocks"
	cut := func(args string, do func(p *start)) ended {
		p := s.begin("", s.arguments(args)...)
		p.bound = 3 * within
		p.run(t)
		do(p)
		e := p.wait(t)
		e.refused(t, 1)
		s.tidy(p.cmd.Process.Pid)
		return e
	}
	after := func(n int) func(*start) {
		return func(p *start) {
			s.recorded("OUT", n)
			_ = syscall.Kill(p.cmd.Process.Pid, syscall.SIGINT)
		}
	}
	cut(line+brief+"--out OUT", after(1))
	manifest := s.path("ROOT/services/go-two/service.yaml")
	sound, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	s.put("ROOT/services/go-two/service.yaml", strings.Replace(string(sound), "[mkdir, -p, bin]",
		"[sh, -c, 'sleep 1000 & wait']", 1))
	before, err := os.ReadFile(s.path("OUT/" + record.RunFile))
	if err != nil {
		t.Fatal(err)
	}
	cut("--root ROOT run --resume OUT", func(p *start) {
		for end := time.Now().Add(within); len(s.processes(p.cmd.Process.Pid)) == 0; {
			if time.Sleep(20 * time.Millisecond); time.Now().After(end) {
				t.Fatal("it builds nothing")
			}
		}
		_ = syscall.Kill(p.cmd.Process.Pid, syscall.SIGINT)
	})
	if now, err := os.ReadFile(s.path("OUT/" + record.RunFile)); err != nil ||
		string(now) != string(before) {
		t.Errorf("a resumption that ended in its build changed the head: %v\n%s", err, now)
	}
	s.put("ROOT/services/go-two/service.yaml", string(sound))
	e := cut("--root ROOT run --resume OUT", after(3))
	s.resumed("OUT", 4, false, e)
}

// recorded waits until a run has this many lines of records.
func (s *scene) recorded(dir string, n int) {
	s.t.Helper()
	for end := time.Now().Add(2 * within); ; time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile(s.path(dir + "/" + record.TrialsFile))
		if err == nil && strings.Count(string(text), "\n") >= n {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("there never were %d records: %v", n, err)
		}
	}
}

// A second and a third Ctrl-C while services stop do no harm.
func TestInterruptedTwice(t *testing.T) {
	testsets.Long(t, "a run that receives several signals", programFiles)
	s := newScene(t)
	s.furnish("go-two")
	p := s.begin("", s.arguments("--root ROOT run --targets go-two,go-three --blocks 2 --slices 1s"+
		brief+"--out OUT")...)
	p.bound = 3 * within
	p.run(t)
	s.recorded("OUT", 2)
	s.served(p, []string{"go-two"})
	began := time.Now()
	for range 3 {
		_ = syscall.Kill(p.cmd.Process.Pid, syscall.SIGINT)
		time.Sleep(30 * time.Millisecond)
	}
	first := p.wait(t)
	if took := time.Since(began); took > ending {
		t.Errorf("it ended %v after the first signal", took)
	}
	first.check(t)
	first.refused(t, 1)
	s.tidy(p.cmd.Process.Pid)
	s.resumed("OUT", 4, false, first)
}

// A record that a kill has cut off, in a start with another complete one, does not count: the start
// is repeated as a whole.
func TestTornRecord(t *testing.T) {
	testsets.Long(t, "a run whose last record is incomplete", programFiles)
	s := newScene(t)
	s.furnish("go-two")
	p := s.begin("", s.arguments("--root ROOT run --targets go-two,go-three --blocks 2 --slices 1s"+
		brief+"--out OUT")...)
	p.bound = 3 * within
	p.run(t)
	s.recorded("OUT", 2)
	_ = syscall.Kill(p.cmd.Process.Pid, syscall.SIGKILL)
	first := p.wait(t)
	name := s.path("OUT/" + record.TrialsFile)
	info, err := os.Stat(name)
	if err == nil {
		err = os.Truncate(name, info.Size()-100)
	}
	if err != nil {
		t.Fatal(err)
	}
	e := s.resumed("OUT", 4, true, first)
	if !strings.Contains(e.stderr, "0 of 4 trials are complete") {
		t.Errorf("it does not repeat the first start: %s", e.stderr)
	}
}

// Two resumptions of a run at once: the second one is refused, and does not touch the records.
func TestResumedTwiceAtOnce(t *testing.T) {
	testsets.Long(t, "a run that is resumed twice at once", programFiles)
	s := newScene(t)
	s.furnish("go-two")
	p := s.begin("", s.arguments("--root ROOT run --targets go-two --blocks 3 --interleave blocks"+
		brief+"--out OUT")...)
	p.run(t)
	s.recorded("OUT", 1)
	_ = syscall.Kill(p.cmd.Process.Pid, syscall.SIGINT)
	p.wait(t)
	again := s.arguments("--root ROOT run --resume OUT")
	p = s.begin("", again...)
	p.bound = 3 * within
	p.run(t)
	s.recorded("OUT", 3) // the interrupted trial, if it has a record, and its repetition
	e := s.try("", again...)
	e.refused(t, 1)
	if !strings.Contains(e.stderr, "another prony is measuring on this machine") {
		t.Errorf("it says %s", e.stderr)
	}
	if e := p.wait(t); e.code != 0 && e.code != 4 {
		t.Errorf("the first one ends with exit %d: %s", e.code, e.stderr)
	}
	_, records, bad, err := record.Read(s.path("OUT"))
	if err != nil || len(bad) > 0 || len(records) != 3 {
		t.Errorf("%d records, bad %v, error %v", len(records), bad, err)
	}
}
