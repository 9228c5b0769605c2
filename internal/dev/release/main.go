// Command release builds the files for installation without a checkout: static programs for each
// system, their bills of materials, manual and completion, Debian packages, images, and the
// checksums of all.
//
//	go run ./internal/dev/release [-o dist] [-for linux/amd64,linux/arm64]
//
// If the machine lacks Debian's packager or Docker's engine, release leaves out that part with a
// line and builds the rest.
package main

import (
	"bytes"
	"cmp"
	"context"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"prony.example/internal/base/buildflags"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/files"
)

// systems are the systems of a release, on which all verbs work.
var systems = []string{"linux/amd64", "linux/arm64"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is a release in progress.
type release struct {
	context.Context
	root, dir string // of the sources, and of the output; both absolute
	report    func(string)
}

func run(ctx context.Context, args []string, stderr io.Writer) error {
	set := flag.NewFlagSet("release", flag.ContinueOnError)
	set.SetOutput(stderr)
	dir := set.String("o", "dist", "`folder` that it is made in; what is there goes")
	root := set.String("root", ".", "`folder` of the sources")
	want := set.String("for", strings.Join(systems, ","), "`systems`, as Go names them")
	if err := set.Parse(args); err != nil {
		return err
	}
	r := release{Context: ctx, report: cmdlog.Lines(stderr)}
	var err error
	if r.root, err = filepath.Abs(*root); err != nil {
		return err
	}
	if r.dir, err = filepath.Abs(*dir); err != nil {
		return err
	}
	if err := empty(r.dir); err != nil {
		return err
	}
	for system := range strings.SplitSeq(*want, ",") {
		if err := r.programs(system); err != nil {
			return fmt.Errorf("%s: %w", system, err)
		}
	}
	if err := r.share(); err != nil {
		return err
	}
	for system := range strings.SplitSeq(*want, ",") {
		if arch, ok := strings.CutPrefix(system, "linux/"); ok {
			if err := errors.Join(r.debian(arch), r.image(arch)); err != nil {
				return fmt.Errorf("%s: %w", system, err)
			}
		}
	}
	return r.checksums()
}

// empty empties a folder that an earlier release has made. Any other folder is an error.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	isOutput := func(f os.DirEntry) bool {
		return f.Name() == sumsName || strings.HasPrefix(f.Name(), "prony")
	}
	if len(entries) > 0 && !slices.ContainsFunc(entries, isOutput) {
		return fmt.Errorf("%s has files that no release made: name another with -o", dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.MkdirAll(dir, 0o755)
}

// program returns the name of a program's file in a release.
func program(name, system string) string {
	name += "-" + strings.ReplaceAll(system, "/", "-")
	if strings.HasPrefix(system, "windows/") {
		name += ".exe"
	}
	return name
}

// programs builds the programs of a system, with their bills of materials. The collector works only
// on Linux.
func (r release) programs(system string) error {
	modules := map[string]string{"prony": "."}
	names := []string{"prony"}
	if strings.HasPrefix(system, "linux/") {
		names, modules["prony-home"] = append(names, "prony-home"), "home"
	}
	goos, arch, ok := strings.Cut(system, "/")
	if !ok {
		return errors.New("want a system and a processor, as linux/arm64")
	}
	for _, name := range names {
		path := filepath.Join(r.dir, program(name, system))
		r.report("build " + filepath.Base(path))
		// -buildvcs records the commit even if the environment's flags do not.
		_, err := r.command([]string{"CGO_ENABLED=0", "GOOS=" + goos, "GOARCH=" + arch,
			buildflags.Lavish}, "go", append([]string{"-C", modules[name]},
			buildflags.Build("-buildvcs=auto", "-o", path, "./cmd/"+name)...)...)
		if err != nil {
			return err
		}
		if err := bill(path); err != nil {
			return err
		}
	}
	return nil
}

// share writes manual pages and completion, which are equal for all systems. A program of this
// machine, built with the tag manual, writes both.
func (r release) share() error {
	r.report("build the manual")
	dir, err := os.MkdirTemp("", "prony-manual-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ownText := filepath.Join(dir, "prony")
	_, err = r.command([]string{"CGO_ENABLED=0", buildflags.Lavish}, "go",
		buildflags.Tagged("manual", "-buildvcs=auto", "-o", ownText, "./cmd/prony")...)
	if err != nil {
		return err
	}
	share := filepath.Join(r.dir, "share")
	manual := filepath.Join(share, "man", "man1")
	if _, err := r.command(nil, ownText, "manual", manual); err != nil {
		return err
	}
	for _, name := range []string{"bash", "fish", "zsh"} {
		text, err := r.command(nil, ownText, "completion", name)
		if err != nil {
			return err
		}
		if err := files.Put(filepath.Join(share, "prony."+name), text); err != nil {
			return err
		}
	}
	return nil
}

// command runs a command in the sources' folder and returns its output.
func (r release) command(env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(r, name, args...)
	cmd.Dir, cmd.Env = r.root, append(os.Environ(), env...)
	cmdlog.Command(cmd)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), cmp.Or(args...), err,
			bytes.TrimSpace(errs.Bytes()))
	}
	return out.Bytes(), nil
}

// versionOf returns the version from which a program was built, without Go's leading v.
func versionOf(path string) (string, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(strings.Trim(info.Main.Version, "()"), "v"), nil
}
