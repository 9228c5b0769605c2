package service

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// As root, the lab runs build steps as the user who called sudo, or else as the checkout's owner,
// without rights of root or ways to them. The mark of a complete build belongs to the lab.
func TestStepsRights(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root's steps are another user's")
	}
	const tell = "cat /proc/self/status >out; echo $HOME >home; test ! -w .. || touch ../planted"
	outer := t.TempDir() // like a container's home, owned by the user who mounted it
	if err := os.Chown(outer, 4242424, 4242424); err != nil {
		t.Fatal(err)
	}
	check := func(name, sudo string, owner int, mode os.FileMode, uid int, home string) {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SUDO_UID", sudo)
			t.Setenv("HOME", "/root")
			if owner > 1 {
				t.Setenv("HOME", outer)
			}
			w := newWorkshop(t, "out", []string{"sh", "-c", tell})
			if err := errors.Join(os.Chmod(filepath.Dir(w.Root), 0o755), os.Chmod(w.Root, mode),
				os.Chown(w.Root, owner, owner)); err != nil {
				t.Fatal(err)
			}
			built := w.build()
			status := read(t, built.Dir, "out")
			wants := []string{"NoNewPrivs:\t1\n",
				fmt.Sprintf("Uid:\t%d\t%[1]d\t%[1]d\t%[1]d\n", uid)}
			for _, set := range []string{"Inh", "Prm", "Eff", "Bnd", "Amb"} {
				wants = append(wants, "Cap"+set+":\t0000000000000000\n")
			}
			for _, want := range wants {
				if !strings.Contains(status, want) {
					t.Errorf("no %q in\n%s", want, status)
				}
			}
			if got := strings.TrimSpace(read(t, built.Dir, "home")); got != home {
				t.Errorf("home %s, want %s", got, home)
			}
			for _, file := range []string{markFile, logFile, ""} {
				var s syscall.Stat_t
				err := syscall.Stat(filepath.Join(filepath.Dir(built.Dir), file), &s)
				if err != nil || s.Uid != 0 {
					t.Errorf("%q is user %d's, %v: a step could have the lab write elsewhere",
						file, s.Uid, err)
				}
			}
		})
	}
	check("who called sudo", "1", 0, 0o755, 1, "/usr/sbin") // daemon, on every system
	check("whose the checkout is", "", 1, 0o755, 1, "/usr/sbin")
	check("who is not known", "", 4242424, 0o755, 4242424, outer)
	check("root's own", "", 0, 0o755, 0, "/root") // nobody has no caches
	check("closed", "1", 0, 0o700, 0, "/root")
}
