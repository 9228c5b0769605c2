package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch"
)

// A group of processes gets no signal if it has the number of a target that has ended.
func TestReusedNumber(t *testing.T) {
	testsets.Live(t)
	stranger := exec.Command("sleep", "1000")
	stranger.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = stranger.Wait() // it is killed
	}()
	t.Cleanup(func() { _ = stranger.Process.Kill(); <-ended })
	p := &proc{Common: launch.NewCommon(launch.Spec{Name: "t"}), groups: &groups{}, born: "1",
		cmd: &exec.Cmd{Process: stranger.Process}, log: filepath.Join(t.TempDir(), "log")}
	p.End("exit status 1")
	if pids := p.PIDs(); len(pids) > 0 {
		t.Errorf("processes of the target are %v", pids)
	}
	if err := p.Stop(time.Millisecond); err != nil {
		t.Error(err)
	}
	select {
	case <-ended:
		t.Error("the other process ended")
	case <-time.After(50 * time.Millisecond): // an end by a signal takes less
	}
}

// A process that remains in the group of a leader that has ended is stopped, also without a link to
// the log.
func TestWhatALeaderLeaves(t *testing.T) {
	testsets.Live(t)
	dir := t.TempDir()
	l := &Launcher{NoGroup: true}
	p, err := l.Launch(t.Context(), launch.Spec{Name: "t", Dir: dir,
		Args:    []string{"sh", "-c", "sleep 1000 >/dev/null 2>&1 & exit 0"},
		LogFile: filepath.Join(dir, "log"), Env: []string{"PATH=" + os.Getenv("PATH")}})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Exited()
	pids := p.PIDs()
	if len(pids) != 1 {
		t.Errorf("%v remain, want one process", pids)
	}
	if err := p.Stop(0); err != nil {
		t.Error(err)
	}
	for _, pid := range pids {
		if unix.Kill(pid, 0) == nil && len(groupMembers(p.Main())) > 0 {
			t.Errorf("process %d still exists", pid)
		}
	}
}
