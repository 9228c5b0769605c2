// Package entry turns a process of this program into a service. It acts before main, as the first
// package after the runtime's: packages are initialised in the order of their paths, each after its
// imports (the Go specification, "Program initialization"), and this package imports next to
// nothing. A service therefore does not pay at each start for the initialisation of this program's
// tables and protocols.
//
// For this reason it calls the kernel only by package syscall. Importing fmt, os or unix would
// initialise half of the program before it; a test prevents this.
package entry

import (
	"errors"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"
)

// Variable marks a process of this program that must become a service.
const Variable = "PRONY_ENTER"

// File descriptors of such a process.
const (
	// Report receives "exec NS", the time on the monotonic clock, or "error: " and the cause.
	Report = 3
	// Order is a file with Entry.String. The kernel limits a variable to 128 KiB.
	Order = 4
)

// Entry describes what the process must do before it becomes the service.
type Entry struct {
	Parent int      // the lab's number; without the lab nothing would stop the service
	Groups []string // directories of cgroups to join
	Cores  []int
	Data   int64 // limit on private memory, bytes; 0: none
	User   int   // user to become; the lab's own: no change
	Group  int
	Others []int // supplementary groups
	Path   string
	Args   []string
	Env    []string
}

// String encodes the entry for Order: each value after its length, each list after its count.
func (e Entry) String() string {
	var out []byte
	put := func(s string) {
		out = append(append(strconv.AppendInt(out, int64(len(s)), 10), ':'), s...)
	}
	list := func(all []string) {
		put(strconv.Itoa(len(all)))
		for _, s := range all {
			put(s)
		}
	}
	put(strconv.Itoa(e.Parent))
	list(e.Groups)
	list(texts(e.Cores))
	put(strconv.FormatInt(e.Data, 10))
	put(strconv.Itoa(e.User))
	put(strconv.Itoa(e.Group))
	list(texts(e.Others))
	put(e.Path)
	list(e.Args)
	list(e.Env)
	return string(out)
}

func texts(numbers []int) (out []string) {
	for _, n := range numbers {
		out = append(out, strconv.Itoa(n))
	}
	return out
}

// reader decodes an entry. After an error all its results are empty.
type reader struct {
	tail string
	err  error
}

func (r *reader) text() string {
	for i := range len(r.tail) {
		if r.tail[i] != ':' {
			continue
		}
		n, err := strconv.Atoi(r.tail[:i])
		if err != nil || n < 0 || n > len(r.tail)-i-1 {
			break
		}
		s := r.tail[i+1 : i+1+n]
		r.tail = r.tail[i+1+n:]
		return s
	}
	r.tail, r.err = "", errors.New("the start instructions are cut short")
	return ""
}

func (r *reader) number() int64 {
	n, err := strconv.ParseInt(r.text(), 10, 64)
	if r.err == nil {
		r.err = err
	}
	return n
}

func (r *reader) integer() int { return int(r.number()) }

// list reads a count and then this many items.
func list[T any](r *reader, item func() T) (out []T) {
	for n := r.number(); n > 0 && r.err == nil; n-- {
		out = append(out, item())
	}
	return out
}

func parse(text string) (e Entry, err error) {
	r := &reader{tail: text}
	e.Parent, e.Groups = r.integer(), list(r, r.text)
	e.Cores, e.Data = list(r, r.integer), r.number()
	e.User, e.Group, e.Others = r.integer(), r.integer(), list(r, r.integer)
	e.Path, e.Args, e.Env = r.text(), list(r, r.text), list(r, r.text)
	return e, r.err
}

// init joins the service's cgroups, applies its limits and executes its program, if the process was
// started to become a service. No instruction of the service runs outside of its limits. In any
// other process it does nothing.
func init() {
	if _, ok := syscall.Getenv(Variable); !ok {
		return
	}
	text, err := order()
	if err == nil {
		err = become(text)
	}
	say("error: " + err.Error() + "\n")
	syscall.Exit(127)
}

// order reads the entry.
func order() (string, error) {
	var s syscall.Stat_t
	if err := syscall.Fstat(Order, &s); err != nil {
		return "", failed("read entry", err)
	}
	b := make([]byte, s.Size)
	for n := 0; n < len(b); {
		read, err := syscall.Pread(Order, b[n:], int64(n))
		if err != nil || read == 0 {
			return "", failed("read entry", err)
		}
		n += read
	}
	return string(b), syscall.Close(Order)
}

// say reports to the lab. It ignores errors because only the lab reads them.
func say(text string) { _, _ = syscall.Write(Report, []byte(text)) }

func failed(subject string, err error) error { return errors.New(subject + ": " + err.Error()) }

// become returns only if it fails.
func become(text string) error {
	e, err := parse(text)
	if err != nil {
		return failed("read entry", err)
	}
	runtime.LockOSThread()
	for _, dir := range e.Groups {
		if err := write(dir+"/cgroup.procs", strconv.Itoa(syscall.Getpid())); err != nil {
			return failed("join cgroup "+dir, err)
		}
	}
	if err := pin(e.Cores); err != nil {
		return failed("set affinity", err)
	}
	if e.Data > 0 {
		const data = 2 // RLIMIT_DATA of setrlimit(2)
		l := syscall.Rlimit{Cur: uint64(e.Data), Max: uint64(e.Data)}
		if err := syscall.Setrlimit(data, &l); err != nil {
			return failed("limit private memory", err)
		}
	}
	if err := drop(e); err != nil {
		return err
	}
	// The signal survives the exec but not a change of the user (prctl(2)), so it is set here. The
	// parent may have died before.
	const killed = uintptr(syscall.SIGKILL)
	if err := call(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, killed, 0); err != nil {
		return failed("set parent-death signal", err)
	}
	if syscall.Getppid() != e.Parent {
		return errors.New("the lab has gone")
	}
	syscall.CloseOnExec(Report)
	const monotonic = 1 // CLOCK_MONOTONIC of clock_gettime(2)
	var now syscall.Timespec
	err = call(syscall.SYS_CLOCK_GETTIME, monotonic, uintptr(unsafe.Pointer(&now)), 0)
	if err != nil {
		return failed("read clock", err)
	}
	say("exec " + strconv.FormatInt(now.Nano(), 10) + "\n")
	return failed("execute "+e.Path, syscall.Exec(e.Path, e.Args, e.Env))
}

// drop removes all rights beyond the user's from this thread, and so from the program that it
// executes: capabilities, root's included, and ways to new ones. Reading back the rights shows what
// the kernel did not remove.
func drop(e Entry) error {
	const ( // of prctl(2) and capabilities(7)
		noNewPrivileges = 38
		dropFromBound   = 24
		ambient, clear  = 47, 4
		version3        = 0x20080522
	)
	if err := call(syscall.SYS_PRCTL, noNewPrivileges, 1, 0); err != nil {
		return failed("drop the right to new privileges", err)
	}
	// Until the kernel rejects the number. Without root there is nothing to drop, and the call
	// fails.
	for c := uintptr(0); call(syscall.SYS_PRCTL, dropFromBound, c, 0) == nil; c++ {
	}
	_ = call(syscall.SYS_PRCTL, ambient, clear, 0) // kernels before 4.3 have none
	if e.User != syscall.Geteuid() {
		peers := make([]uint32, len(e.Others)+1) // at least one element, so that &peers[0] exists
		for i, g := range e.Others {
			peers[i] = uint32(g)
		}
		user, group := uintptr(e.User), uintptr(e.Group)
		if err := call(syscall.SYS_SETGROUPS, uintptr(len(e.Others)),
			uintptr(unsafe.Pointer(&peers[0])), 0); err != nil {
			return failed("set groups", err)
		}
		if err := call(syscall.SYS_SETRESGID, group, group, group); err != nil {
			return failed("set group", err)
		}
		if err := call(syscall.SYS_SETRESUID, user, user, user); err != nil {
			return failed("set user", err)
		}
	}
	head, none := [2]uint32{version3, 0}, [6]uint32{}
	err := call(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&none)),
		0)
	if err != nil {
		return failed("drop capabilities", err)
	}
	return nil
}

func call(number, a, b, c uintptr) error {
	if _, _, errno := syscall.RawSyscall(number, a, b, c); errno != 0 {
		return errno
	}
	return nil
}

func write(path, text string) error {
	fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	_, err = syscall.Write(fd, []byte(text))
	return errors.Join(err, syscall.Close(fd))
}

// pin binds this thread, and so the program that it executes, to cores. Without cores it does
// nothing.
func pin(cores []int) error {
	if len(cores) == 0 {
		return nil
	}
	const word = 64
	var set [16]uint64 // 1,024 processors, as in the C library's set
	for _, c := range cores {
		if c < 0 || c >= len(set)*word {
			return errors.New("there is no core " + strconv.Itoa(c))
		}
		set[c/word] |= 1 << (c % word)
	}
	return call(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(set),
		uintptr(unsafe.Pointer(&set)))
}
