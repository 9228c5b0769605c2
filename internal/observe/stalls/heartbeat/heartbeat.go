//go:build linux && !portable

// Package heartbeat makes a process of this program a heartbeat: on each of some cores, a thread at
// real-time priority sleeps until the next point of a grid and writes the time at which it woke
// into shared memory. Only the hypervisor, the kernel and processes of a higher priority delay it.
//
// It is a process of its own because Go's scheduler, on its way out of a sleep, waits in a loop for
// threads at normal priority, which a thread at real-time priority keeps off the core. In this
// process all threads have the same priority from their birth, the collector is off, and a thread
// that ticks does not return to the scheduler.
//
// The process starts before main, as package entry does, and imports next to nothing. It ends when
// its standard input ends, and so at the latest with its parent. The kernel ends it if a thread
// runs for 0.2 s without a sleep (RLIMIT_RTTIME), so that an error cannot block a core.
package heartbeat

import (
	"errors"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Variable marks a process of this program that must become a heartbeat. Its value is
// Start.String().
const Variable = "PRONY_HEARTBEAT"

// Memory is the file descriptor of the shared memory, which has a Beat for each core.
const Memory = 3

// Capacity is the number of ticks that are kept for each core.
const Capacity = 1 << 14

// States of a Beat, and commands. Each command above Ticking wakes the thread for a moment, as
// Interrupt does, and leaves it idle.
const (
	Starting = iota // no thread yet
	Idle            // the thread waits for a command
	Ticking
)

// Beat is the state of one core that parent and heartbeat share.
type Beat struct {
	Command uint32 // Idle or Ticking; a futex on which the heartbeat waits
	State   uint32 // a futex on which the parent waits
	Last    uint32 // the last command that the thread has read while idle
	Head    uint64 // number of written ticks; the tick n is at n modulo Capacity
	Ticks   [Capacity]int64
}

// Size returns the size in bytes of the shared memory for a number of cores.
func Size(cores int) int { return cores * int(unsafe.Sizeof(Beat{})) }

// Beats returns the Beats in the shared memory.
func Beats(memory []byte) []Beat {
	return unsafe.Slice((*Beat)(unsafe.Pointer(&memory[0])), len(memory)/Size(1))
}

// Start is the configuration of a heartbeat.
type Start struct {
	Priority int   // of SCHED_FIFO
	PeriodNs int64 // from tick to tick
	Cores    []int
}

// String returns the value of Variable.
func (s Start) String() string { return s.text(false) }

// text returns the value of Variable; first: the process already has its priority.
func (s Start) text(first bool) string {
	words := []string{strconv.FormatBool(first), strconv.Itoa(s.Priority),
		strconv.FormatInt(s.PeriodNs, 10)}
	for _, core := range s.Cores {
		words = append(words, strconv.Itoa(core))
	}
	return strings.Join(words, " ")
}

func parse(text string) (s Start, first bool, err error) {
	words := strings.Fields(text)
	if len(words) < 4 {
		return s, false, errors.New("start a heartbeat: the variable " + Variable + " is cut short")
	}
	first = words[0] == "true"
	var numbers []int
	for _, word := range words[1:] {
		n, wrong := strconv.Atoi(word)
		numbers, err = append(numbers, n), errors.Join(err, wrong)
	}
	return Start{numbers[0], int64(numbers[1]), numbers[2:]}, first, err
}

func init() {
	text, ok := syscall.Getenv(Variable)
	if !ok {
		return
	}
	err := become(text)
	code := Failed
	if f, refused := err.(*failure); refused {
		code = int(f.errno)
	}
	_, _ = syscall.Write(2, []byte(err.Error())) // without a parent the message is lost
	syscall.Exit(code)
}

// Failed is the exit status of errors other than the kernel's. After an error of the kernel, its
// number is the exit status.
const Failed = 255

// failure is an action that the kernel refused.
type failure struct {
	subject string
	errno   syscall.Errno
}

func (f *failure) Error() string { return f.subject }

// failed returns a failure from an error of the kernel.
func failed(subject string, err error) error {
	errno, _ := err.(syscall.Errno) // package syscall returns no other errors
	return &failure{subject, errno}
}

// become runs the heartbeat. It returns only with an error.
func become(text string) error {
	s, first, err := parse(text)
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	if !first {
		return s.again()
	}
	memory, err := syscall.Mmap(Memory, 0, Size(len(s.Cores)),
		syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return failed("map the shared memory", err)
	}
	wrong := make(chan error)
	for i := range s.Cores {
		go func() { wrong <- s.run(s.Cores[i], &Beats(memory)[i]) }()
	}
	go func() { wrong <- inputEnds() }()
	return <-wrong
}

// inputEnds returns when the standard input, which carries no bytes, has no more writers.
func inputEnds() error {
	var b [1]byte
	for {
		if _, err := syscall.Read(0, b[:]); err != syscall.EINTR {
			return errors.New("the input from Prony has ended")
		}
	}
}

// again executes this program again with the priority, which all its threads inherit.
func (s Start) again() error {
	const (
		fifo    = 1  // SCHED_FIFO of sched_setscheduler(2)
		rtTime  = 15 // RLIMIT_RTTIME of setrlimit(2), in µs
		longest = 200_000
	)
	limit := syscall.Rlimit{Cur: longest, Max: longest}
	if err := syscall.Setrlimit(rtTime, &limit); err != nil {
		return failed("limit the time of a thread", err)
	}
	priority := int32(s.Priority)
	if err := call(syscall.SYS_SCHED_SETSCHEDULER, 0, fifo,
		uintptr(unsafe.Pointer(&priority))); err != nil {
		return failed("set real-time priority", err)
	}
	env := []string{
		Variable + "=" + s.text(true), "GOGC=off", "GODEBUG=asyncpreemptoff=1",
		"GOMAXPROCS=" + strconv.Itoa(len(s.Cores)+1),
	}
	return failed("execute this program again",
		syscall.Exec("/proc/self/exe", []string{Name}, env))
}

// Name is the process's name in process lists.
const Name = "prony-heartbeat"

// run is the loop of a core's thread. It returns only if it cannot start.
func (s Start) run(core int, b *Beat) error {
	runtime.LockOSThread()
	const word = 64
	var set [16]uint64
	if core < 0 || core >= len(set)*word {
		return errors.New("the machine has no core " + strconv.Itoa(core))
	}
	set[core/word] = 1 << (core % word)
	if err := call(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(set),
		uintptr(unsafe.Pointer(&set))); err != nil {
		return failed("pin a thread to core "+strconv.Itoa(core), err)
	}
	for {
		b.change(Idle)
		for {
			command := atomic.LoadUint32(&b.Command)
			atomic.StoreUint32(&b.Last, command)
			if command == Ticking {
				break
			}
			Wait(&b.Command, command, 1e9)
		}
		b.change(Ticking)
		b.tick(s.PeriodNs)
	}
}

func (b *Beat) change(state uint32) {
	atomic.StoreUint32(&b.State, state)
	Wake(&b.State)
}

// tick writes a tick at each point of a grid until the command changes. It calls no function that
// returns to Go's scheduler.
//
//go:nosplit
func (b *Beat) tick(period int64) {
	const monotonic, absolute = 1, 1
	var until, now syscall.Timespec
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, monotonic,
		uintptr(unsafe.Pointer(&now)), 0)
	due := now.Sec*1e9 + now.Nsec + period
	for atomic.LoadUint32(&b.Command) == Ticking {
		until.Sec, until.Nsec = due/1e9, due%1e9
		_, _, err := syscall.RawSyscall6(syscall.SYS_CLOCK_NANOSLEEP, monotonic, absolute,
			uintptr(unsafe.Pointer(&until)), 0, 0, 0)
		if err == syscall.EINTR {
			continue
		}
		_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, monotonic,
			uintptr(unsafe.Pointer(&now)), 0)
		woke := now.Sec*1e9 + now.Nsec
		b.Ticks[b.Head%Capacity] = woke
		atomic.AddUint64(&b.Head, 1)
		for due <= woke { // passed points get no tick
			due += period
		}
	}
}

// Interrupt takes the core from what runs there, for some microseconds, if the thread is idle. It
// returns when the thread runs, or after a limit of attempts to see it, some 100 µs.
func (b *Beat) Interrupt() {
	const limit = 100_000
	command := max(atomic.LoadUint32(&b.Command)+1, Ticking+1)
	atomic.StoreUint32(&b.Command, command)
	Wake(&b.Command)
	for range limit {
		if atomic.LoadUint32(&b.Last) == command {
			return
		}
	}
}

// Wait returns when another process wakes the waiters of a word, when the word has a different
// value, or after a timeout (futex(2)).
func Wait(word *uint32, value uint32, ns int64) {
	const wait = 0 // FUTEX_WAIT, between processes
	until := syscall.NsecToTimespec(ns)
	_, _, _ = syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), wait,
		uintptr(value), uintptr(unsafe.Pointer(&until)), 0, 0)
}

// Wake wakes all waiters of a word.
func Wake(word *uint32) {
	const wake, all = 1, 1 << 30
	_, _, _ = syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), wake, all, 0,
		0, 0)
}

func call(number, a, b, c uintptr) error {
	if _, _, errno := syscall.RawSyscall(number, a, b, c); errno != 0 {
		return errno
	}
	return nil
}
