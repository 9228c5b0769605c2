package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// killedSteps are the steps of a trial in which its target is killed, each equally often. The
// moments are uniform over the step's length in the first trial, which is not disturbed. Images
// have no contract, so the last step takes no time, and is left out for them.
var killedSteps = []string{"launch", "ready", "verify", "warmup", "peak", "reverify"}

const (
	kills = 30 // of each kind
	// killedTrials is the number of trials of a run. Those without a kill must be good.
	killedTrials = 50
	// spared is the distance of trials without a kill.
	spared = 8
	// longStep is the length from which a command of the engine reaches its target in time.
	longStep = 500 * time.Millisecond
)

// victims are the kinds of targets. Each has the base name of its program, and may have a command
// that ends it by its engine.
var victims = []struct {
	name, args, program string
	prepare             func(*scene)
	engine              func(s *scene, p *start) bool
}{
	{"process", "--root ROOT run --targets go-two --interleave blocks --warmup 1s --measure 1s " +
		"--out OUT --blocks ", "go-two", func(s *scene) { s.furnish("go-two") }, nil},
	{"docker", "run --launcher docker --out OUT --blocks ", victim, (*scene).imageProject,
		removeContainer},
	{"kubernetes", "run --launcher kubernetes --out OUT --blocks ", victim, (*scene).podProject,
		deletePod},
}

// victim is the name of the program in images of this process, and of the namespace of its pods.
var victim = fmt.Sprintf("victim-%d", os.Getpid())

func removeContainer(s *scene, p *start) bool {
	up := s.containers(p.cmd.Process.Pid)
	return len(up) > 0 && exec.Command("docker", append([]string{"rm", "--force"}, up...)...).
		Run() == nil
}

func deletePod(_ *scene, _ *start) bool {
	out, err := exec.Command("kubectl", "delete", "pods", "--selector=prony.lab", "--wait=false",
		"--grace-period=0", "--force", "--output=name", "--namespace="+victim).Output()
	return err == nil && len(out) > 0
}

// killProgram kills all processes of a program, of the scene or in a container, and reports whether
// there were any.
func (s *scene) killProgram(name string) (killed bool) {
	all, _ := filepath.Glob("/proc/[0-9]*/exe") // the pattern is valid
	for _, path := range all {
		exe, _ := os.Readlink(path) // empty if it has ended
		if filepath.Base(exe) != name || exe != "/"+victim && !strings.HasPrefix(exe, s.dir+"/") {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		killed = syscall.Kill(pid, syscall.SIGKILL) == nil || killed
	}
	return killed
}

// imageProject writes a project of an image.
func (s *scene) imageProject() {
	s.put("prony.yaml", fmt.Sprintf(`targets: {app: {image: %q}}
requests: [{request: GET /}]
limits: {cpus: 1, memory: 64MiB}
warmup: {min: 500ms, max: 1s, connections: 2}
loads: [{name: peak, model: closed, connections: 2, measure: 1s}]
interleave: blocks
`, s.image(victim)))
}

// podProject writes a project of an image that is copied to this node.
func (s *scene) podProject() {
	for _, line := range [][]string{{"kubectl", "version", "--request-timeout=5s"},
		{"ctr", "version"}} {
		if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
			s.t.Skipf("no cluster of this node is reached: %v: %s", err, out)
		}
	}
	s.imageProject()
	s.put("load", "#!/bin/sh\ndocker save \"$1\" | ctr images import -\n")
	if err := os.Chmod(s.path("load"), 0o755); err != nil {
		s.t.Fatal(err)
	}
	s.t.Setenv("PRONY_KUBERNETES_LOAD", s.path("load"))
	s.t.Setenv("PRONY_KUBERNETES_NAMESPACE", victim)
	s.namespace("create")
	s.t.Cleanup(func() { s.namespace("delete") })
}

// namespace creates or deletes the namespace of the pods.
func (s *scene) namespace(do string) {
	if out, err := exec.Command("kubectl", do, "namespace", victim).CombinedOutput(); err != nil {
		s.t.Errorf("kubectl %s namespace: %v: %s", do, err, out)
	}
}

// A target that ends at any moment of its trial leaves a failed record with the cause and a whole
// run: no panic, no leftover, no lost trial.
func TestKilledTargets(t *testing.T) {
	testsets.Long(t, "targets that are killed at any moment of a trial", programFiles)
	for _, v := range victims {
		t.Run(v.name, func(t *testing.T) {
			testsets.Measured(t)
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			s := newScene(t)
			v.prepare(s)
			p := s.begin("", s.arguments(v.args+fmt.Sprint(killedTrials))...)
			p.bound = 20 * within
			p.run(t)
			k := &killer{s: s, p: p, moments: rand.New(rand.NewPCG(seed, 0)), program: v.program,
				engine: v.engine, lengths: map[string]time.Duration{}}
			k.draw()
			for !k.next() && k.alive() {
				time.Sleep(time.Millisecond)
			}
			e := p.wait(t)
			if panicked := dump.FindString(e.stderr); e.code != cli.Invalid || e.late || e.left ||
				panicked != "" {
				t.Errorf("exit %d, want %d; late %v, processes are left %v, panic %q\n%s", e.code,
					cli.Invalid, e.late, e.left, panicked, e.stderr)
			}
			s.tidy(p.cmd.Process.Pid)
			k.judge()
		})
	}
}

// killer follows the progress of a run and kills its targets.
type killer struct {
	s       *scene
	p       *start
	moments *rand.Rand
	program string
	engine  func(s *scene, p *start) bool

	pending []string // steps in which to kill, in order
	lengths map[string]time.Duration
	read    int64             // bytes of the progress
	lines   []record.Progress // read, but not yet handled
	last    record.Progress   // the last step
	trials  []string          // that have begun
	struck  []string          // trials whose targets were killed
	ended   int               // trials with a record, by the progress
}

// draw chooses the order of the kills.
func (k *killer) draw() {
	steps := killedSteps
	if k.engine != nil {
		steps = steps[:len(steps)-1]
	}
	for i := range kills {
		k.pending = append(k.pending, steps[i%len(steps)])
	}
	k.moments.Shuffle(len(k.pending), func(i, j int) {
		k.pending[i], k.pending[j] = k.pending[j], k.pending[i]
	})
}

// alive reports whether the program has not ended.
func (k *killer) alive() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", k.p.cmd.Process.Pid))
	return err == nil && !bytes.Contains(stat, []byte(") Z "))
}

// refresh reads the new whole lines of the progress.
func (k *killer) refresh() {
	file, err := os.Open(k.s.path("OUT/" + record.ProgressFile))
	if err != nil {
		return // the run has not begun
	}
	defer file.Close()
	data := make([]byte, 1<<20)
	n, _ := file.ReadAt(data, k.read) // io.EOF at each present end
	data = data[:bytes.LastIndexByte(data[:n], '\n')+1]
	k.read += int64(len(data))
	for line := range bytes.Lines(data) {
		var now record.Progress
		if err := json.Unmarshal(line, &now); err != nil {
			k.s.t.Fatalf("%s: %v", line, err)
		}
		k.lines = append(k.lines, now)
	}
}

// next handles the new lines, and reports whether the run has ended.
func (k *killer) next() (ended bool) {
	for k.refresh(); len(k.lines) > 0; k.refresh() {
		now := k.lines[0]
		k.lines = k.lines[1:]
		switch now.Kind {
		case record.Steps:
			k.step(now)
		case record.TrialEnds:
			k.ended++
		case record.Ends:
			return true
		}
	}
	return false
}

// over reports whether a trial has ended.
func (k *killer) over(trial string) bool {
	k.refresh()
	return slices.ContainsFunc(k.lines, func(x record.Progress) bool {
		return x.Kind == record.TrialEnds || x.Kind == record.Steps && x.Trial != trial
	})
}

// step handles the beginning of a step.
func (k *killer) step(now record.Progress) {
	if now.Trial == "" {
		return
	}
	if !slices.Contains(k.trials, now.Trial) {
		k.trials = append(k.trials, now.Trial)
	}
	if len(k.trials) == 1 && k.last.Step != "" {
		k.lengths[k.last.Step] = now.Time.Sub(k.last.Time)
	}
	k.last = now
	if (len(k.trials)-1)%spared == 0 || slices.Contains(k.struck, now.Trial) ||
		len(k.pending) == 0 || k.pending[0] != now.Step {
		return
	}
	at := time.Duration(k.moments.Int64N(int64(k.lengths[now.Step]) + 1))
	byEngine := k.engine != nil && k.lengths[now.Step] > longStep && k.moments.IntN(2) == 0
	for ; !k.over(now.Trial); time.Sleep(time.Millisecond) {
		if time.Since(now.Time) < at ||
			!(byEngine && k.engine(k.s, k.p) || !byEngine && k.s.killProgram(k.program)) {
			continue
		}
		k.struck, k.pending = append(k.struck, now.Trial), k.pending[1:]
		k.s.t.Logf("%s: killed in %s, %v of %v after its beginning, by its engine: %v", now.Trial,
			now.Step, time.Since(now.Time).Round(time.Millisecond),
			k.lengths[now.Step].Round(time.Millisecond), byEngine)
		return
	}
	k.s.t.Logf("%s: ended before it was killed in %s: a later one will be", now.Trial, now.Step)
	k.pending = append(k.pending[1:], k.pending[0])
}

// judge checks the records of the run, and logs their numbers.
func (k *killer) judge() {
	t := k.s.t
	_, records, bad, err := record.Read(k.s.path("OUT"))
	if err != nil || len(bad) > 0 || len(records) != killedTrials || k.ended != killedTrials {
		t.Errorf("%d records and %d ends of %d trials, bad %v, error %v", len(records), k.ended,
			killedTrials, bad, err)
	}
	failed, whole := map[string]int{}, 0
	for _, r := range records {
		f, struck := r.Failure, slices.Contains(k.struck, r.Trial)
		switch {
		case f == nil && r.Outcome == record.Measured && !struck:
			whole++
		case f == nil && r.Outcome == record.Measured: // everything had been measured before
			failed["none"]++
		case f != nil && struck && f.Error != "" && (!strings.Contains(f.Error, "unknown") ||
			strings.Contains(f.Error, "deleted the pod")): // its exit code was deleted with it
			failed[f.Step]++
		default:
			t.Errorf("%s is %s, killed: %v, failure %+v", r.Trial, r.Outcome, struck, f)
		}
	}
	t.Logf("%d targets were killed: failures by step %v; %d trials without a kill are good",
		len(k.struck), failed, whole)
	if len(k.pending) > 0 {
		t.Errorf("these kills are missing: %v", k.pending)
	}
	if left := k.s.containers(k.p.cmd.Process.Pid); k.program == victim && len(left) > 0 {
		t.Errorf("containers are left: %v", left)
	}
}
