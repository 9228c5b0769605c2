// Package locate finds prony-home, which collects telemetry, answers queries and writes Parquet:
// beside the calling program, on the PATH or, with a checkout, by building it like a service, with
// the same progress, lock and cache. A checkout is the given one, or the one whose make build made
// the calling program.
//
// It checks a found program before use: no other user may have been able to write it, and its
// version must match.
//
// Non-goals: it does not start the program (telemetry.Launch does).
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
	"prony.example/internal/base/files"
	"prony.example/internal/service"
	"prony.example/internal/telemetry"
)

// Folder of the program's module in a checkout, and of its main package in the module.
const homeModule, homeMain = "home", "cmd/" + telemetry.HomeName

// Finder says where to look.
type Finder struct {
	Beside   string            // folder of the calling program; empty: of this process
	Root     string            // of the checkout; empty: no checkout
	Progress func(line string) // receives progress of a build; nil: none
}

// Find returns the program's path. Errors say what to do.
func (f Finder) Find(ctx context.Context) (string, error) {
	folder, err := f.folder()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", telemetry.HomeName, err)
	}
	switch path, root := installed(folder), f.checkout(folder); {
	case path != "":
		if err := check(ctx, path, telemetry.OwnVersion()); err != nil {
			return "", fmt.Errorf("use %s: %w", path, err)
		}
		return path, nil
	case root == "":
		return "", fmt.Errorf("find %s, which collects telemetry, serves queries, writes "+
			"Parquet and copies runs to buckets: it is neither beside this program nor in PATH; "+
			"install it there, or run the command in a checkout of Prony, which builds it when "+
			"it is needed", telemetry.HomeName)
	default:
		return f.build(ctx, root)
	}
}

// folder returns the folder of the calling program.
func (f Finder) folder() (string, error) {
	if f.Beside != "" {
		return f.Beside, nil
	}
	self, err := os.Executable()
	return filepath.Dir(self), err
}

// installed returns the program beside the calling one or on the PATH; empty: neither exists.
func installed(folder string) string {
	if path := filepath.Join(folder, telemetry.HomeName); isThere(path) {
		return path
	}
	path, err := exec.LookPath(telemetry.HomeName)
	if err != nil { // none, or below a relative folder of the PATH, which is not trusted
		return ""
	}
	return path
}

// checkout returns the given checkout or, if it has no sources of the program, the one whose make
// build put the calling program into its folder bin; empty: neither. Another user's checkout could
// build any program.
func (f Finder) checkout(folder string) string {
	if hasSources(f.Root) {
		return f.Root
	}
	dir := filepath.Dir(folder)
	info, err := os.Stat(dir)
	if filepath.Base(folder) != "bin" || !hasSources(dir) || err != nil || foreign(info) {
		return ""
	}
	return dir
}

func hasSources(root string) bool {
	return files.IsFile(filepath.Join(root, homeModule, homeMain, "main.go"))
}

// check checks the owner of a program and that it has the same version.
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

// trust returns an error if a user other than root and this user could have written the program or
// its folder.
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

// askWait limits how long a program may take to print its version.
const askWait = 10 * time.Second

func ask(ctx context.Context, path string) (v telemetry.Version, err error) {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "version")
	cmd.WaitDelay = time.Second // a process that it left may keep the pipe open
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

// build builds the program from a checkout, or takes an earlier build of the same sources. These
// define its version, so it compares only the protocol.
func (f Finder) build(ctx context.Context, root string) (string, error) {
	const made = "bin/" + telemetry.HomeName
	item, err := sourcesOf(root, homeModule+"/"+homeMain)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", telemetry.HomeName, err)
	}
	b := service.Builder{Root: root, Tools: service.FindTools(ctx), Progress: func(line string) {
		// Otherwise every query would print that nothing was built.
		if f.Progress != nil && line != "build "+telemetry.HomeName+": cached" {
			f.Progress(line)
		}
	}}
	built, err := b.Build(ctx, &service.Service{
		Name: telemetry.HomeName, Dir: root, Only: item.has,
		Needs: []service.Need{{Tool: "go", Version: "1.26"}},
		// The same flags as for prony, so that common packages are compiled only once.
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
