// Package privilege says as whom the lab runs what is not its own: services and the steps that
// build them. A lab that is no root runs them as itself. One that is, because cgroups and some
// profilers ask for it, keeps that to itself: they get the id of whoever called sudo, or else an
// unprivileged one, no capabilities and no way to new privileges (capabilities(7), prctl(2)).
//
// Non-goals: it is no sandbox. What the user may read and write, a service may.
package privilege

import (
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// nobody is the id that owns nothing, by the kernel's own default (/proc/sys/kernel/overflowuid).
const nobody = 65534

// User is who somebody else's program is run as.
type User struct {
	UID, GID int
	Groups   []int  // beside GID
	Home     string // empty: it has none
}

func itself() User { return User{UID: os.Geteuid(), GID: os.Getegid()} }

// Apart says whether it is another user than the lab.
func (u User) Apart() bool { return u.UID != os.Geteuid() }

// Service is who runs a service that works in a folder and needs files and folders: who called
// sudo, the folder's owner, or nobody; the first who gets to all of them. Where none does, as in
// root's own home, it is root, without capabilities.
func Service(dir string, needs ...string) User {
	for _, u := range others(dir) {
		if u.reaches(append(needs, dir)) {
			return u
		}
	}
	return itself()
}

// Build is who builds what is in a checkout with some tools: who called sudo, or the checkout's
// owner, where they get to the tools. Those keep their caches in that user's home, so that nobody
// cannot.
func Build(checkout string, tools ...string) User {
	for _, u := range others(checkout) {
		if u.Home != "" && u.reaches(append(tools, checkout)) {
			return u
		}
	}
	return itself()
}

// others are those who come into question where the lab is root.
func others(dir string) (all []User) {
	if os.Geteuid() != 0 {
		return nil
	}
	if uid, err := strconv.Atoi(os.Getenv("SUDO_UID")); err == nil && uid > 0 {
		all = append(all, known(uid))
	}
	var s unix.Stat_t
	if unix.Stat(dir, &s) == nil && s.Uid > 0 {
		all = append(all, known(int(s.Uid)))
	}
	return append(all, User{UID: nobody, GID: nobody})
}

// known adds to a user's id what the system knows of it. One that it does not know, as the owner of
// what is mounted into a container, may have the home that the lab was given.
func known(uid int) User {
	u := User{UID: uid, GID: nobody}
	match, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		var s unix.Stat_t
		if home := os.Getenv("HOME"); unix.Stat(home, &s) == nil && int(s.Uid) == uid {
			u.Home = home
		}
		return u
	}
	u.Home = match.HomeDir
	// Root's group may write what is root's.
	if gid, err := strconv.Atoi(match.Gid); err == nil && gid != 0 {
		u.GID = gid
	}
	names, _ := match.GroupIds() // without them it has fewer rights
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil && n != u.GID && n != 0 {
			u.Groups = append(u.Groups, n)
		}
	}
	return u
}

// reaches says whether the user may go to all paths, as they are named and where links lead, and
// read what is there. Lists of access are not looked at.
func (u User) reaches(paths []string) bool {
	for _, path := range paths {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return false
		}
		for _, location := range []string{path, real} {
			if !u.may(location, 5) {
				return false
			}
			for dir := filepath.Dir(location); ; dir = filepath.Dir(dir) {
				if !u.may(dir, 1) {
					return false
				}
				if dir == filepath.Dir(dir) {
					break
				}
			}
		}
	}
	return true
}

// may says whether the mode of a file permits the bits, of 4 to read and 1 to execute or search.
func (u User) may(path string, bits uint32) bool {
	var s unix.Stat_t
	if unix.Stat(path, &s) != nil {
		return false
	}
	mode := s.Mode
	if s.Mode&unix.S_IFMT != unix.S_IFDIR {
		bits &^= 1 // a program, or what one reads: exec tells
	}
	switch {
	case int(s.Uid) == u.UID:
		mode >>= 6
	case int(s.Gid) == u.GID || slices.Contains(u.Groups, int(s.Gid)):
		mode >>= 3
	}
	return mode&bits == bits
}

// Env is an environment with the user's home in the place of the lab's.
func (u User) Env(env []string) []string {
	out := slices.Clone(env)
	for i, pair := range out {
		if strings.HasPrefix(pair, "HOME=") && u.Apart() {
			out[i] = "HOME=" + u.Home
			if u.Home == "" {
				out[i] = "HOME=" + os.TempDir()
			}
		}
	}
	return out
}

// Give makes a folder and all in it the user's.
func (u User) Give(folder string) error {
	if !u.Apart() {
		return nil
	}
	return filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, u.UID, u.GID)
	})
}

// Start starts a command as the user, without capabilities and new privileges. Both are a thread's
// and go to what it forks, so that a thread is spent for it.
func (u User) Start(cmd *exec.Cmd) error {
	return Spend(func() error { return u.start(cmd) })
}

// Spend does something on a thread of its own, for what a thread hands on to what it forks and
// cannot take back. It ends with its goroutine, as that does not unlock it. Only the first thread
// of a process cannot end.
func Spend(do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			done <- Spend(do) // on another one, as this is held meanwhile
			runtime.UnlockOSThread()
			return
		}
		done <- do()
	}()
	return <-done
}

func (u User) start(cmd *exec.Cmd) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	for c := 0; ; c++ { // until there is no such capability; who is no root has none to drop
		if unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0) != nil {
			break
		}
	}
	if u.Apart() {
		if cmd.SysProcAttr == nil {
			cmd.SysProcAttr = &syscall.SysProcAttr{}
		}
		credential := &syscall.Credential{Uid: uint32(u.UID), Gid: uint32(u.GID)}
		for _, g := range u.Groups {
			credential.Groups = append(credential.Groups, uint32(g))
		}
		cmd.SysProcAttr.Credential = credential
	}
	return cmd.Start()
}

// Runs are the files that a command in a folder is run from, as far as can be told beforehand: its
// program, what a line for sh names that is a file, and the interpreters of what is a script. A
// program that may be read by all is of no use to somebody who may not read its interpreter.
func Runs(dir, program string, args []string) (files []string) {
	words := []string{program}
	if len(args) > 2 && filepath.Base(args[0]) == "sh" && args[1] == "-c" {
		words = append(words, strings.FieldsFunc(args[2], func(r rune) bool {
			return strings.ContainsRune(" \t\n;|&()'\"", r)
		})...)
	}
	for _, word := range words {
		path, ok := found(dir, word)
		for ; ok; path, ok = interpreter(dir, path) {
			if files = append(files, path); len(files) > maxRuns {
				return files
			}
		}
	}
	return files
}

// maxRuns bounds interpreters that name each other.
const maxRuns = 100

// found is the regular file that a word of a command names.
func found(dir, word string) (path string, ok bool) {
	switch {
	case filepath.IsAbs(word):
		path = word
	case strings.Contains(word, "/"):
		path = filepath.Join(dir, word)
	default:
		path, _ = exec.LookPath(word)
	}
	info, err := os.Stat(path)
	return path, err == nil && info.Mode().IsRegular()
}

// interpreter is what runs a script (execve(2)); for /usr/bin/env, what that looks for.
func interpreter(dir, script string) (path string, ok bool) {
	f, err := os.Open(script)
	if err != nil {
		return "", false
	}
	defer f.Close()
	var head [256]byte // as much of it as the kernel looks at
	n, _ := io.ReadFull(f, head[:])
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	tail, isScript := strings.CutPrefix(line, "#!")
	words := strings.Fields(tail)
	if !isScript || len(words) == 0 {
		return "", false
	}
	if len(words) > 1 && filepath.Base(words[0]) == "env" {
		words = words[1:]
		if words[0] == "-S" && len(words) > 1 {
			words = words[1:]
		}
	}
	return found(dir, words[0])
}
