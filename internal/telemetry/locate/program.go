// Package locate finds prony-home, which takes telemetry in, answers queries and writes Parquet:
// beside the program that asks, on the PATH, or, in a checkout, by building it as a service is
// built, with the same progress, lock and cache.
//
// One that was found may be anybody's, so it is asked for its version, and before that looked at:
// what another user could have put there is not run.
//
// Non-goals: starting it, which telemetry.Launch does, or whoever hands over to it.
package locate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"prony.example/internal/base/buildflags"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/service"
	"prony.example/internal/telemetry"
)

// Where the program's main package is in a checkout: its module's folder, and the folder below it.
const homeModule, homeMain = "home", "cmd/" + telemetry.HomeName

// Finder says where to look.
type Finder struct {
	Beside   string            // the folder of the program that asks; empty: where this one is
	Root     string            // of the checkout; empty: there is none
	Progress func(line string) // of a build; nil: silence
}

// Find returns the program's path. An error says what to do.
func (f Finder) Find(ctx context.Context) (string, error) {
	path, err := f.there()
	switch {
	case err != nil:
		return "", fmt.Errorf("find %s: %w", telemetry.HomeName, err)
	case path != "":
		if err := check(ctx, path, telemetry.OwnVersion()); err != nil {
			return "", fmt.Errorf("use %s: %w", path, err)
		}
		return path, nil
	case !isFile(filepath.Join(f.Root, homeModule, homeMain, "main.go")):
		return "", fmt.Errorf("find %s, which collects telemetry, serves queries and writes "+
			"Parquet: it is neither beside this program nor in PATH; install it there, or run "+
			"the command in a checkout of Prony, which builds it when it is needed",
			telemetry.HomeName)
	}
	return f.build(ctx)
}

// there is the one that is beside the program or on the PATH; empty: neither is.
func (f Finder) there() (string, error) {
	sibling := f.Beside
	if sibling == "" {
		self, err := os.Executable()
		if err != nil {
			return "", err
		}
		sibling = filepath.Dir(self)
	}
	if path := filepath.Join(sibling, telemetry.HomeName); isThere(path) {
		return path, nil
	}
	path, err := exec.LookPath(telemetry.HomeName)
	if err != nil { // none, or one below a relative folder of the PATH, which is no promise
		return "", nil
	}
	return path, nil
}

// check looks at a program that was found, and asks it whether it is of the same version.
func check(ctx context.Context, path string, ownVersion telemetry.Version) error {
	if err := trust(path); err != nil {
		return err
	}
	got, err := ask(ctx, path)
	if err != nil {
		return err
	}
	if got != ownVersion {
		return fmt.Errorf("it has version %s (protocol %d), but this program has version %s "+
			"(protocol %d); build both from one checkout, or remove the found program: a "+
			"checkout builds it when it is needed",
			got.Version, got.Protocol, ownVersion.Version, ownVersion.Protocol)
	}
	return nil
}

// trust wants that nobody but root and this user can have put the program, or its folder's other
// files, there.
func trust(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Lstat(real)
	if err != nil {
		return err
	}
	folder, err := os.Stat(filepath.Dir(real))
	if err != nil {
		return err
	}
	const others = 0o002
	switch {
	case !info.Mode().IsRegular():
		return errors.New("the program is not a regular file; remove it")
	case foreign(info) || foreign(folder):
		return errors.New("the program, or its folder, belongs to another user, who could " +
			"replace it with any program; remove it, or put your own copy before it in PATH")
	case info.Mode().Perm()&others != 0,
		folder.Mode().Perm()&others != 0 && folder.Mode()&fs.ModeSticky == 0:
		return fmt.Errorf("all users can write to the program, or to its folder; run chmod o-w "+
			"%s %s", real, filepath.Dir(real))
	}
	return nil
}

func foreign(info fs.FileInfo) bool {
	stat_t, ok := info.Sys().(*syscall.Stat_t)
	return !ok || stat_t.Uid != 0 && int(stat_t.Uid) != os.Geteuid()
}

// askWait bounds how long a program may take to say its version.
const askWait = 10 * time.Second

func ask(ctx context.Context, path string) (v telemetry.Version, err error) {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "version")
	cmdlog.Command(cmd)
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &v)
	}
	if err != nil {
		return v, fmt.Errorf("read the program's version: %w; build it again, or remove it", err)
	}
	return v, nil
}

// build makes the program from the checkout, or takes an earlier build of the same sources. These
// are its version, so that only the protocol is compared.
func (f Finder) build(ctx context.Context) (string, error) {
	const made = "bin/" + telemetry.HomeName
	item, err := sourcesOf(f.Root, homeModule+"/"+homeMain)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", telemetry.HomeName, err)
	}
	b := service.Builder{Root: f.Root, Tools: service.FindTools(ctx), Progress: func(line string) {
		// Every query would say that there was nothing to build.
		if f.Progress != nil && line != "build "+telemetry.HomeName+": cached" {
			f.Progress(line)
		}
	}}
	built, err := b.Build(ctx, &service.Service{
		Name: telemetry.HomeName, Dir: f.Root, Only: item.has,
		Needs: []service.Need{{Tool: "go", Version: "1.26"}},
		// As prony is built by make, so that what both link is compiled once.
		Build: service.Build{Artifact: made, Steps: [][]string{slices.Concat(
			[]string{"env", buildflags.Lavish, "go", "-C", homeModule},
			buildflags.Build("-buildvcs=false", "-o", "../"+made, "./"+homeMain))}},
	})
	if err != nil {
		return "", err
	}
	path := filepath.Join(built.Dir, made)
	got, err := ask(ctx, path)
	if err == nil && got.Protocol != telemetry.Protocol {
		err = fmt.Errorf("the program of the checkout has protocol %d, but this program has %d; "+
			"build this program again with make build", got.Protocol, telemetry.Protocol)
	}
	if err != nil {
		return "", fmt.Errorf("use %s: %w", path, err)
	}
	return path, nil
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
