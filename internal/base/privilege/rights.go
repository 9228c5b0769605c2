// Package privilege decides which user runs programs that are not the lab's: services and their
// build steps. A lab without root runs them as itself. A lab with root, which cgroups and some
// profilers need, runs them as the user that called sudo, or as another unprivileged user, without
// capabilities and without a way to new privileges (capabilities(7), prctl(2)).
//
// Non-goals: it is not a sandbox. A service may read and write what its user may.
package privilege

import (
	"io"
	"io/fs"
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

// nobody is the id of the user without files, by the kernel's default
// (/proc/sys/kernel/overflowuid).
const nobody = 65534

// User is the user that runs a program.
type User struct {
	UID, GID int
	Groups   []int  // beside GID
	Home     string // empty: no home
}

// Itself returns the user of this program.
func Itself() User { return User{UID: os.Geteuid(), GID: os.Getegid()} }

// Apart reports whether it is another user than the lab's.
func (u User) Apart() bool { return u.UID != os.Geteuid() }

// Name returns the user's name, or its id if it has no account.
func (u User) Name() string {
	if known, err := user.LookupId(strconv.Itoa(u.UID)); err == nil {
		return known.Username
	}
	return strconv.Itoa(u.UID)
}

// Service returns the user that runs a service in a folder and reads the files and folders in
// needs: the caller of sudo, the folder's owner, or nobody, whichever first can access all of them.
// If none can, for example in root's home, it returns root; Start drops the capabilities.
func Service(dir string, needs ...string) User {
	for _, u := range others(dir) {
		if u.reaches(append(needs, dir)) {
			return u
		}
	}
	return Itself()
}

// Build returns the user that builds a checkout with some tools: the caller of sudo, or the
// checkout's owner, if they can access the tools. Tools keep their caches in that user's home, so
// nobody, who has none, cannot build.
func Build(checkout string, tools ...string) User {
	for _, u := range others(checkout) {
		if u.Home != "" && u.reaches(append(tools, checkout)) {
			return u
		}
	}
	return Itself()
}

// others returns the candidates in order of preference if the lab is root, and none otherwise.
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

// known returns the user of an id with its groups and home. An id without an account, for example
// the owner of a folder that is mounted into a container, gets the lab's $HOME if it owns that.
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
	// Root's group is left out, because it may write files of root.
	if gid, err := strconv.Atoi(match.Gid); err == nil && gid != 0 {
		u.GID = gid
	}
	names, _ := match.GroupIds() // after an error the user has fewer rights
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil && n != u.GID && n != 0 {
			u.Groups = append(u.Groups, n)
		}
	}
	return u
}

// reaches reports whether the user may enter and read all paths, as named and after resolving
// links. It ignores access control lists.
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

// may reports whether the mode of a file permits the bits: 4 to read, 1 to execute or search.
func (u User) may(path string, bits uint32) bool {
	var s unix.Stat_t
	if unix.Stat(path, &s) != nil {
		return false
	}
	mode := s.Mode
	if s.Mode&unix.S_IFMT != unix.S_IFDIR {
		bits &^= 1 // an error of exec reports a missing right to execute
	}
	switch {
	case int(s.Uid) == u.UID:
		mode >>= 6
	case int(s.Gid) == u.GID || slices.Contains(u.Groups, int(s.Gid)):
		mode >>= 3
	}
	return mode&bits == bits
}

// Env returns an environment with the user's home instead of the lab's.
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

// lchown changes an owner; tests replace it.
var lchown = (*os.Root).Lchown

// Give makes the user the owner of a folder and everything in it. It changes nothing outside: the
// user may already replace parts of the folder by links.
func (u User) Give(folder string) error {
	if !u.Apart() {
		return nil
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return lchown(root, name, u.UID, u.GID)
	})
}

// Start starts a command as the user, without capabilities and new privileges. Both belong to a
// thread and its children, so Start uses up a thread.
func (u User) Start(cmd *exec.Cmd) error {
	return Spend(func() error { return u.start(cmd) })
}

// Spend calls a function on a new thread that ends afterwards. It is for attributes of a thread
// that its children inherit and that cannot be undone: the goroutine never unlocks the thread, and
// so the runtime ends it. The first thread of a process cannot end.
func Spend(do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			done <- Spend(do) // gets another thread, because this one is locked meanwhile
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
	for c := 0; ; c++ { // until the last capability; users other than root have none to drop
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

// Runs returns the files that a command in a folder is run from, as far as they are known
// beforehand: its program, files that a line for sh names, and interpreters of scripts. A user
// needs access to all of them: a script is useless to a user that cannot read its interpreter.
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

// maxRuns bounds chains of interpreters that name each other.
const maxRuns = 100

// found returns the regular file that a word of a command names.
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

// interpreter returns the program that runs a script (execve(2)); for /usr/bin/env, the program
// that it looks up.
func interpreter(dir, script string) (path string, ok bool) {
	f, err := os.Open(script)
	if err != nil {
		return "", false
	}
	defer f.Close()
	var head [256]byte // as many bytes as the kernel reads
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
