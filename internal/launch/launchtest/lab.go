package launchtest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Lab is a lab in another process: the test binary, started with an environment variable.
type Lab struct {
	Cmd   *exec.Cmd
	ID    string
	Guard int    // number of its guard's process
	Said  string // last word of its announcement
	Dir   string // of its guard's notes
}

// StartLab starts a lab with orders and a folder in the variable env, and waits for its
// announcement (see Announce). The lab ends with the test.
func StartLab(t *testing.T, env, orders string) *Lab {
	t.Helper()
	l := &Lab{Cmd: exec.Command(os.Args[0]), Dir: t.TempDir()}
	l.Cmd.Env = append(os.Environ(), env+"="+orders+" "+l.Dir)
	l.Cmd.Stderr = t.Output()
	out, err := l.Cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Kill(t) })
	line, err := bufio.NewReader(out).ReadString('\n')
	f := strings.Fields(line)
	if len(f) != 4 {
		t.Fatalf("the lab printed %q: %v", line, err)
	}
	l.ID, l.Said = f[1], f[3]
	if l.Guard, err = strconv.Atoi(f[2]); err != nil {
		t.Fatal(err)
	}
	return l
}

// Announce prints the identity of a lab, and then waits until it is killed.
func Announce(to io.Writer, id string, guard int, word any) error {
	if _, err := fmt.Fprintln(to, "lab", id, guard, word); err != nil {
		return err
	}
	time.Sleep(time.Hour)
	return nil
}

// Kill kills the lab if it still runs.
func (l *Lab) Kill(t *testing.T) {
	if l.Cmd.ProcessState == nil {
		if err := l.Cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = l.Cmd.Wait() // it was killed
	}
}

var cleanups []func()

// AfterAll registers a function that removes something after all tests of a package.
func AfterAll(remove func()) { cleanups = append(cleanups, remove) }

// Main runs the tests of a package and then the functions of AfterAll. It returns the exit status.
func Main(m *testing.M) int {
	defer func() {
		for _, remove := range cleanups {
			remove()
		}
	}()
	return m.Run()
}
