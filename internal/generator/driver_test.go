package generator

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/lazyregexp"
)

// TestOfferByATool offers a load with a tool that prints the number of its good responses. The
// lead-in and the window are runs of their own.
func TestOfferByATool(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	path := filepath.Join(dir, "fake")
	offer := func(says string) (text, runs string, err error) {
		t.Helper()
		script := "#!/bin/sh\nif [ \"$1\" = -v ]; then echo fake 1.2; exit; fi\n" +
			"echo \"$1\" >>" + dir + "/runs\n" + says + "\n"
		if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(filepath.Join(dir, "runs")) // of the previous load
		fake := &tool{name: "fake", request: []string{"-v"}, text: "fake",
			version: lazyregexp.New(`fake ([\d.]+)`), can: ability{closed: true},
			grain: time.Second, status: []int{9},
			start: func(j *job) (command, error) {
				return command{argv: []string{j.path, filepath.Base(j.dir) + " " +
					j.length.String()}}, nil
			},
			read: func(_ *job, o *output) (*tally, error) {
				if len(o.text) == 0 {
					return nil, errors.New("it has no lines")
				}
				out := &tally{durationNs: 2e9}
				_, err := fmt.Sscan(string(o.text), &out.good)
				return out, err
			}}
		s := plain()
		s.Cores, s.Lead = nil, 300*time.Millisecond
		r, err := (&foreign{tool: fake, path: path}).Offer(t.Context(), s)
		if err == nil {
			text = fmt.Sprintf("%s %s %d at %g/s", r.Name, r.Driver, r.Done, r.ThroughputPerS)
		}
		data, _ := os.ReadFile(filepath.Join(dir, "runs"))
		return text, string(data), err
	}
	check := func(says, want, fails string) {
		t.Helper()
		got, runs, err := offer(says)
		if got != want || (err == nil) != (fails == "") ||
			err != nil && !strings.Contains(err.Error(), "run load peak with fake: "+fails) {
			t.Errorf("%s: %q, error %v; want %q, %s", says, got, err, want, fails)
		}
		if err == nil && runs != "lead 1s\nwindow 2s\n" {
			t.Errorf("%s: runs %q", says, runs)
		}
	}
	check("echo 10", "peak fake 1.2 10 at 5/s", "")
	check("echo 10; exit 9", "peak fake 1.2 10 at 5/s", "")
	check("echo 10; exit 3", "", "the load generator exited with status 3; end of its output: 10")
	check("echo 0", "", "the load generator received no responses; end of its output: 0")
	check("true", "", "read the output of the load generator: it has no lines")
}
