package process

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/clock"
	"prony.example/internal/launch"
)

// open returns a folder that every user can enter.
func open(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// status returns the lines of a process's status by name (proc(5)).
func status(t *testing.T, pid int) map[string]string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		out[name] = strings.Join(strings.Fields(value), " ")
	}
	return out
}

// TestRights checks a service and its children in the kernel: their user, that they have no rights
// of root and no way to them, and that limits are in force.
func TestRights(t *testing.T) {
	check := func(name, dir, sudo string, noGroup bool, uid, home string) {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SUDO_UID", sudo)
			l := &Launcher{Journal: journal(t), NoGroup: noGroup}
			p, err := l.Launch(context.Background(), launch.Spec{
				Name: "t", Dir: dir, LogFile: filepath.Join(dir, name+".log"),
				Args: []string{"sh", "-c", "sleep 1000 & echo $HOME >/dev/stdout; wait"},
				Env:  []string{"PATH=/usr/bin:/bin", "HOME=/root"}, Cores: []int{0}, CPUs: 1,
				MemoryBytes: 256 << 20,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Stop(0) //nolint:errcheck // it is killed
			for end := clock.Mono() + patience; clock.Mono() < end && (len(p.PIDs()) < 2 ||
				len(p.Log(1)) == 0); {
				time.Sleep(time.Millisecond)
			}
			if log := p.Log(1); len(log) == 0 || log[0] != home {
				t.Errorf("its home is %q, want %s", log, home)
			}
			want := map[string]string{"Uid": strings.Repeat(uid+" ", 3) + uid, "NoNewPrivs": "1"}
			for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
				want[set] = "0000000000000000"
			}
			for _, pid := range p.PIDs() {
				got := status(t, pid)
				for _, line := range slices.Sorted(maps.Keys(want)) {
					if got[line] != want[line] && (os.Getuid() == 0 || line != "CapBnd") {
						t.Errorf("%s of %d is %s, want %s", line, pid, got[line], want[line])
					}
				}
				if uid != "0" && os.Getuid() == 0 && slices.Contains(strings.Fields(got["Groups"]),
					"0") {
					t.Errorf("it is in root's group: %s", got["Groups"])
				}
			}
			inForce, missing := p.Limits()
			all := strings.Join(wording.Limits(inForce), "; ")
			if !strings.Contains(all, "memory 268435456") || !strings.Contains(all, "affinity 0") {
				t.Errorf("in force is %q, missing %+v", all, missing)
			}
		})
	}
	if os.Getuid() != 0 {
		check("caller", open(t), "", false, fmt.Sprint(os.Getuid()), "/root")
		return
	}
	temp := os.TempDir()
	check("nobody", open(t), "", false, "65534", temp)
	check("nobody without groups", open(t), "", true, "65534", temp)
	check("who called sudo", open(t), "1", false, "1", "/usr/sbin") // daemon, on every system
	check("root called sudo", open(t), "0", false, "65534", temp)
	check("who is not known", open(t), "4242424", false, "4242424", temp)
	theirs := open(t)
	if err := os.Chown(theirs, 1, 1); err != nil {
		t.Fatal(err)
	}
	check("whose the folder is", theirs, "", false, "1", "/usr/sbin")
	// No other user can enter it, so the service runs as root without capabilities.
	closed := filepath.Join(open(t), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	check("closed", closed, "1", false, "0", "/root")
}

// A service of another user also ends with the lab, although the kernel clears the signal when the
// user changes.
func TestKilledLabOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root's services are another user's")
	}
	t.Setenv("SUDO_UID", "1")
	for name, noGroup := range map[string]string{"groups": "", "no groups": "yes"} {
		t.Run(name, func(t *testing.T) {
			killed(t, filepath.Join(open(t), "journal"), noGroup, "")
		})
	}
}
