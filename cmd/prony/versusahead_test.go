package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/launch/process"
	"prony.example/internal/service"
	"prony.example/internal/trial/lab"
	"prony.example/internal/trial/machine"
)

// sequence is the machine that lists what runs in which order.
type sequence struct {
	machine.World
	list *[]string
}

// Enter implements lab.World.
func (w sequence) Enter() (*process.Journal, []string, error) {
	*w.list = append(*w.list, "machine")
	return w.World.Enter()
}

// Build implements lab.World.
func (w sequence) Build(ctx context.Context, b *service.Builder, s *service.Service) (
	*service.Built, error) {
	built, err := w.World.Build(ctx, b, s)
	if err == nil && !built.Cached {
		*w.list = append(*w.list, "build "+s.Name)
	}
	return built, err
}

var _ lab.World = sequence{}

// Share implements lab.World.
func (w sequence) Share() (func() error, error) {
	*w.list = append(*w.list, "share")
	return w.World.Share()
}

// Revisions are built before the machine is taken for measurements, also while another lab builds,
// but not while it measures. Without --wait, the machine is taken first.
func TestBuildsDoNotHoldTheMachine(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	t.Setenv(process.Beside, "1") // ignore the turns of other users' labs
	dir := ownFolder(t)
	check := func(code int, want []string, wait ...string) (said string) {
		t.Helper()
		var list []string
		var out, errs bytes.Buffer
		line := append([]string{"versus", "--git", "HEAD", "-n", "a", "--build", "cp " +
			filepath.Join(dir, "app") + " app", "--run", "./app", "--get", "/",
			"--plan"}, wait...)
		exit := cli.Code(run(t.Context(), sequence{machine.World{}, &list}, line, &out, &errs))
		if list = slices.Compact(list); exit != code || !slices.Equal(list, want) {
			t.Errorf("%q: exit %d, it did %q, want %d and %q\n%s%s", wait, exit, list, code, want,
				&out, &errs)
		}
		return errs.String()
	}
	other, _, err := process.OpenJournal(process.DefaultDir())
	if err != nil {
		t.Fatal(err)
	}
	has(t, "without --wait", check(cli.Failed, []string{"machine"}), "another prony is measuring "+
		"on this machine: process "+itoa(os.Getpid()), "wait for the other process with --wait")
	check(cli.Failed, []string{"share"}, "--wait=100ms")
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	leave, err := process.Share(process.DefaultDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	has(t, "without --wait", check(cli.Failed, []string{"machine"}), "another prony is building "+
		"on this machine: process "+itoa(os.Getpid()))
	check(cli.Failed, []string{"share", "build a", "machine"}, "--wait=100ms")
	if err := leave(); err != nil {
		t.Fatal(err)
	}
	check(cli.Fine, []string{"share", "machine"}, "--wait=1m")
	said := check(cli.Fine, []string{"machine"})
	if n := strings.Count(said, "build a: cached"); n != 1 {
		t.Errorf("it says %d times that the build is cached:\n%s", n, said)
	}
}
