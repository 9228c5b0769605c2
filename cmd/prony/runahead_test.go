package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/launch/process"
	"prony.example/internal/service"
	"prony.example/internal/trial/lab"
)

// staged is a mock world with turns of the machine, which lists what runs in which order.
type staged struct {
	mock
	dir  string
	list *[]string
}

// Enter implements lab.World.
func (w staged) Enter() (*process.Journal, []string, error) {
	*w.list = append(*w.list, "machine")
	return process.OpenJournal(w.dir)
}

// Busy implements lab.World.
func (w staged) Busy() error { return process.Used(w.dir, "") }

// Build implements lab.World.
func (w staged) Build(ctx context.Context, b *service.Builder, s *service.Service) (
	*service.Built, error) {
	*w.list = append(*w.list, "build "+s.Name)
	return w.mock.Build(ctx, b, s)
}

var _ lab.World = staged{}

// Services of the catalog are built before the machine is taken, also while another lab measures.
// Without --wait, nothing is built meanwhile.
func TestRunsBuildAhead(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	t.Setenv(process.Beside, "1") // ignore the turns of other users' labs
	dir := filepath.Join(t.TempDir(), "journal")
	root := checkout(t)
	check := func(want []string, wait ...string) (said string) {
		t.Helper()
		w := staged{dir: dir, list: new([]string)}
		var out, errs bytes.Buffer
		exit := cli.Code(run(t.Context(), w, append([]string{"run", "--root", root, "--targets",
			"go-nethttp", "--out", filepath.Join(t.TempDir(), "r")}, wait...), &out, &errs))
		if list := slices.Compact(*w.list); exit != cli.Failed || !slices.Equal(list, want) {
			t.Errorf("%q: exit %d, it did %q, want %q\n%s%s", wait, exit, list, want, &out, &errs)
		}
		return errs.String()
	}
	other, _, err := process.OpenJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	has(t, "without --wait", check(nil), "another prony is measuring on this machine: process "+
		itoa(os.Getpid()))
	check([]string{"build go-nethttp", "machine"}, "--wait=100ms")
}
