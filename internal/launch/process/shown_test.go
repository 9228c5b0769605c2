package process

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/launch"
)

// The command that -x shows has the same effect as the launch: the same groups, cores, limits,
// environment and arguments.
func TestTheLineShownDoesTheSame(t *testing.T) {
	for name, noGroup := range map[string]bool{"groups": false, "no groups": true} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			cmdlog.Show(func(line string) { lines = append(lines, line) })
			defer cmdlog.Show(nil)
			t.Setenv("API_KEY", "hush")
			dir := t.TempDir()
			const tell = "cat /proc/self/cgroup; grep Cpus_allowed_list /proc/self/status; " +
				"ulimit -d; pwd; env | grep -v SHLVL | sort; echo \"$0 $1\"; echo end; sleep $2"
			l := &Launcher{Journal: journal(t), NoGroup: noGroup}
			p, err := l.Launch(context.Background(), launch.Spec{
				Name: "t", Dir: dir, LogFile: filepath.Join(dir, "log"),
				Args:  []string{"sh", "-c", tell, "it's", "a $word", "0.5"},
				Env:   []string{"PATH=/usr/bin:/bin", "MODE=x y", "API_KEY=hush"},
				Cores: []int{0}, CPUs: 0.5, MemoryBytes: 256 << 20,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Stop(0) //nolint:errcheck // it has ended
			for end := clock.Mono() + patience; clock.Mono() < end &&
				!slices.Contains(p.Log(99), "end"); {
				time.Sleep(time.Millisecond)
			}
			starts := func(l string) bool { return strings.HasPrefix(l, "(cd") }
			at := slices.IndexFunc(lines, starts)
			if at < 0 {
				t.Fatalf("no line starts it: %q", lines)
			}
			out, err := exec.Command("sh", "-c", lines[at]).CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v: %s", lines[at], err, out)
			}
			if got, want := string(out), strings.Join(p.Log(99), "\n")+"\n"; got != want {
				t.Errorf("%s\nsays\n%s, want\n%s", lines[at], got, want)
			}
			if strings.Contains(strings.Join(lines, "\n"), "hush") {
				t.Errorf("a secret is shown: %q", lines)
			}
			made := slices.ContainsFunc(lines, func(l string) bool {
				return strings.HasPrefix(l, "mkdir /sys/fs/cgroup")
			})
			if has := len(p.Groups()) > 0; made != has || has && noGroup {
				t.Errorf("making of groups shown: %v, groups: %v, in %q", made, has, lines)
			}
		})
	}
}
