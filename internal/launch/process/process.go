// Package process launches a target as a plain process, without Docker or root. The target gets a
// process group and, if permitted, cgroups of its own, otherwise affinity and rlimits.
//
// Nothing survives the lab: Stop ends the target and all that it has forked; a parent-death signal
// ends the target if the lab is killed; a journal on disk lets the next lab end the rest
// (OpenJournal).
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/privilege"
	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
	"prony.example/internal/launch/process/entry"
	"prony.example/internal/observe/host"
	"prony.example/record"
)

// Launcher starts plain processes.
type Launcher struct {
	Journal *Journal // lists running targets, on disk
	NoGroup bool     // use no cgroups, for tests of the other means
}

// launches numbers the targets of all launchers in this program.
var launches atomic.Int64

// Listen implements launch.Launcher.
func (*Launcher) Listen() string { return "127.0.0.1" }

// proc is a running target.
type proc struct {
	*launch.Common
	cmd     *exec.Cmd
	groups  *groups
	guest   bool // in the groups of another process, which removes them
	journal *Journal
	name    string
	user    string // under whose name it runs, if not this program's; otherwise empty
	log     string // path of the log as the kernel resolves it
	born    string // start time of the leader

	mu      sync.Mutex
	workers map[int]string // start times of processes seen, by number
}

// Launch implements launch.Launcher.
func (l *Launcher) Launch(ctx context.Context, s launch.Spec) (launch.Process, error) {
	path, err := lookPath(s)
	if err != nil {
		return nil, err
	}
	p := &proc{
		Common: launch.NewCommon(s), journal: l.Journal, groups: &groups{},
		name: fmt.Sprintf("prony-%d-%d", os.Getpid(), launches.Add(1)),
	}
	host, ok := s.Beside.(*proc)
	if s.Beside != nil && !ok {
		return nil, fmt.Errorf("launch %s: the process must share the limits of a process that "+
			"this launcher did not start", s.Name)
	}
	if host != nil {
		p.guest, p.groups = true, host.groups
	} else if l.NoGroup {
		p.groups.refused = []string{"cgroup: left alone as asked"}
	} else {
		p.groups = makeGroups(p.name, s, ownHierarchies())
		p.groups.freezer = makeFreezer(p.name, p.groups.list)
	}
	if err := l.Journal.add(p.name, launched{Groups: p.ownDirs()}); err != nil {
		p.clean()
		return nil, err
	}
	if err := p.start(ctx, path); err != nil {
		return nil, errors.Join(fmt.Errorf("launch %s: %w", s.Name, err), p.Stop(0))
	}
	pid := p.cmd.Process.Pid
	started := launched{PID: pid, Born: cgroup.Born(pid), Log: p.log, Groups: p.ownDirs()}
	if err := l.Journal.add(p.name, started); err != nil {
		return nil, errors.Join(err, p.Stop(0))
	}
	p.noteLimits()
	return p, nil
}

// User returns the name of the user that runs the process; empty: it is this program's.
func (p *proc) User() string { return p.user }

// ownDirs returns the cgroups to remove with this process.
func (p *proc) ownDirs() []string {
	if p.guest {
		return nil
	}
	return p.groups.dirs()
}

func lookPath(s launch.Spec) (string, error) {
	if len(s.Args) == 0 {
		return "", fmt.Errorf("launch %s: the target has no command", s.Name)
	}
	path := s.Args[0]
	if !strings.Contains(path, "/") {
		match, err := exec.LookPath(path)
		if err != nil {
			return "", fmt.Errorf("launch %s: %w; install the program, or add its folder to PATH",
				s.Name, err)
		}
		return match, nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.Dir, path)
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("launch %s: %w; build the service first", s.Name, err)
	}
	return path, nil
}

func ownHierarchies() []hierarchy {
	ownText, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	return hierarchies(cgroup.OwnMounts(), cgroup.Paths(string(ownText)))
}

// start runs this program again, which becomes the target (see package entry).
func (p *proc) start(ctx context.Context, path string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	e := entry.Entry{
		Parent: os.Getpid(), Groups: p.groups.dirs(), Cores: p.Spec.Cores,
		Path: path, Args: p.Spec.Args,
	}
	user := privilege.Itself()
	if !p.Spec.AsMe {
		user = privilege.Service(p.Spec.Dir, append(privilege.Runs(p.Spec.Dir, path, p.Spec.Args),
			filepath.Dir(p.Spec.LogFile))...)
	}
	e.User, e.Group, e.Others, e.Env = user.UID, user.GID, user.Groups, user.Env(p.Spec.Env)
	if cgroup.ReadMemory(p.groups.list).LimitBytes == 0 {
		e.Data = p.Spec.Alone()
	}
	out, err := p.OpenLog()
	if err != nil {
		return err
	}
	defer out.Close()
	if user.Apart() { // the user may open it again, as /dev/stdout
		if err := out.Chown(user.UID, user.GID); err != nil {
			return fmt.Errorf("pass the log to the process: %w", err)
		}
		if err := user.Give(p.Spec.Give); p.Spec.Give != "" && err != nil {
			return fmt.Errorf("pass the TLS certificate to the process: %w", err)
		}
		if err := user.Give(p.Spec.Copy); p.Spec.Copy != "" && err != nil {
			return fmt.Errorf("pass the copy of the service's folder to the process: %w", err)
		}
		p.user = user.Name()
	}
	p.log, _ = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", out.Fd())) // empty without /proc
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	defer w.Close()
	order, err := ordered(e)
	if err != nil {
		return err
	}
	defer order.Close()
	p.cmd = exec.Command(self)
	p.cmd.Dir, p.cmd.Env = p.Spec.Dir, []string{entry.Variable + "=1"}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.ExtraFiles = []*os.File{w, order} // entry.Report and entry.Order
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmdlog.Say(line(e, p.Spec.Dir))
	started := make(chan error)
	go p.keep(started)
	err = <-started
	w.Close()
	if err != nil {
		return err
	}
	return p.hear(ctx, r)
}

// ordered returns a file in memory with an entry.
func ordered(e entry.Entry) (*os.File, error) {
	fd, err := unix.MemfdCreate("entry", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("pass the command to the process: %w", err)
	}
	file := os.NewFile(uintptr(fd), "entry")
	if _, err := file.WriteString(e.String()); err != nil {
		return nil, errors.Join(fmt.Errorf("pass the command to the process: %w", err),
			file.Close())
	}
	return file, nil
}

// keep starts the process and waits for its end on one locked thread: the parent-death signal comes
// when the *thread* that forked ends, so that thread must live as long as the process.
func (p *proc) keep(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	if err == nil {
		p.born = cgroup.Born(p.cmd.Process.Pid)
	}
	started <- err
	if err != nil {
		p.End("")
		return
	}
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	}
	p.noteWorkers() // they remain, and the group's number is still in use
	how := "exit status 0"
	if err = p.cmd.Wait(); err != nil {
		how = err.Error()
	}
	// The groups exist until Stop.
	p.End(cgroup.ReadMemory(p.groups.list).Exit(how, p.Stopping.Load()))
}

// hear reads from the pipe the time of the exec, or the reason of a failure.
func (p *proc) hear(ctx context.Context, r *os.File) error {
	if err := r.SetReadDeadline(clock.Wall().Add(startBound)); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = r.SetReadDeadline(time.Unix(1, 0)) })()
	b, err := io.ReadAll(io.LimitReader(r, 4096))
	text := string(b)
	switch { // any other error ends the text, which is then too short
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("the program did not begin within %v", startBound)
	}
	if cause, failed := strings.CutPrefix(lastLine(text), "error: "); failed {
		return errors.New(cause)
	}
	ns, err := strconv.ParseInt(strings.TrimPrefix(lastLine(text), "exec "), 10, 64)
	if err != nil {
		return fmt.Errorf("the process ended before its program began (%q)", text)
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return err
	}
	p.BeganNs = clock.Mono() - (now.Nano() - ns)
	return nil
}

// startBound limits the time from fork to exec.
const startBound = 10 * time.Second

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// noteLimits reads back from the kernel which limits are in force, and which are not.
func (p *proc) noteLimits() {
	pid, refused := p.cmd.Process.Pid, slices.Clone(p.groups.refused)
	inForce, err := cgroup.Limits(p.groups.list, pid, p.Spec)
	if err != nil {
		refused = append(refused, err.Error())
	}
	ownNs := p.Spec.Alone()
	if data := cgroup.DataLimit(pid); ownNs > 0 && data == ownNs {
		inForce = append(inForce, record.Limit{Kind: record.LimitMemory, By: record.ByRlimit,
			Value: float64(data)})
	}
	p.InForce = inForce
	p.Missing = cgroup.Unenforced(p.Spec, inForce, record.Refused, strings.Join(refused, "; "))
	if cgroup.ReadMemory(p.groups.list).LimitBytes > 0 && cgroup.MaySwap(p.groups.list) {
		p.Missing = append(p.Missing, record.Unenforced(
			record.Limit{Kind: record.LimitSwap}, record.NotCounted, ""))
	}
}

func (p *proc) Main() int              { return p.cmd.Process.Pid }
func (p *proc) Groups() []launch.Group { return p.groups.list }

// PIDs implements launch.Process. It reads the cgroup, or else the process group, also if the
// process shares the cgroup of another.
func (p *proc) PIDs() []int {
	if len(p.groups.list) > 0 && !p.guest {
		return cgroup.PIDs(p.groups.list[0].Dir)
	}
	return p.members()
}

// members lists the processes of the target's group and their descendants. There are none once the
// leader was waited for and all others have ended: the kernel may then use the number again.
func (p *proc) members() []int {
	pgid := p.cmd.Process.Pid
	select {
	case <-p.Exited():
		if !isOurs(launched{PID: pgid, Born: p.born, Log: p.log}) && !p.remains(pgid) {
			return nil
		}
	default:
	}
	return groupMembers(pgid)
}

// remains reports whether a process that was seen is still in the group.
func (p *proc) remains(pgid int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for pid, born := range p.workers {
		group, err := unix.Getpgid(pid)
		if err == nil && group == pgid && cgroup.Born(pid) == born {
			return true
		}
	}
	return false
}

// groupMembers lists the processes of a process group and all their descendants, since servers give
// workers groups of their own (proc(5), /proc/PID/stat, fields 4 and 5).
func groupMembers(pgid int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	parents, within := map[int]int{}, map[int]bool{}
	var live []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		f := cgroup.Stat(pid)
		if len(f) < 3 || f[0] == "Z" {
			continue
		}
		live = append(live, pid)
		parents[pid], _ = strconv.Atoi(f[1]) // the kernel writes numbers
		within[pid] = f[2] == strconv.Itoa(pgid)
	}
	return slices.DeleteFunc(live, func(pid int) bool {
		for pos := pid; pos > 1; pos = parents[pos] {
			if within[pos] {
				return false
			}
		}
		return true
	})
}

// Stop implements launch.Process.
func (p *proc) Stop(grace time.Duration) error {
	p.Stops.Lock()
	defer p.Stops.Unlock()
	p.Stopping.Store(true)
	if p.cmd != nil && p.cmd.Process != nil {
		p.thaw()
		p.noteWorkers()
		if pgid := p.cmd.Process.Pid; grace > 0 && len(p.members()) > 0 {
			cmdlog.Run("kill", "-TERM", "--", strconv.Itoa(-pgid))
			_ = unix.Kill(-pgid, unix.SIGTERM) // it may have gone already
			p.Wait(grace)
		}
	}
	return p.clean()
}

// noteWorkers records the present processes with their start times: after its parent has ended, a
// worker with a group of its own cannot be attributed.
func (p *proc) noteWorkers() {
	members := p.members()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.workers == nil {
		p.workers = map[int]string{}
	}
	for _, pid := range members {
		p.workers[pid] = cgroup.Born(pid)
	}
}

// killDaemon kills a process that listens at the port of the ended target, began after it and has
// its environment: a worker that has left the process group and lost its parent. A control group
// has such workers, too, so a target with one needs no such search.
func (p *proc) killDaemon() {
	if len(p.groups.list) > 0 || p.Spec.Port <= 0 {
		return
	}
	const tick = int64(10 * time.Millisecond) // of ages
	for _, pid := range host.Listening("tcp", p.Addr()) {
		age, ok := cgroup.Age(pid)
		if ok && age <= clock.Mono()-p.Began()+tick && pid != os.Getpid() && p.inherited(pid) {
			_ = unix.Kill(pid, unix.SIGKILL) // it may have ended
		}
	}
}

// inherited reports whether a process has all of the target's environment.
func (p *proc) inherited(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	env := strings.Split(string(text), "\x00")
	return err == nil && len(p.Spec.Env) > 0 &&
		!slices.ContainsFunc(p.Spec.Env, func(v string) bool { return !slices.Contains(env, v) })
}

// clean ends all remaining processes by force and removes cgroups, log watch and journal entry.
func (p *proc) clean() error {
	var errs []error
	if p.cmd != nil && p.cmd.Process != nil {
		errs = append(errs, p.killProcessGroup())
	}
	for _, dir := range p.ownDirs() {
		errs = append(errs, endGroup(dir))
	}
	errs = append(errs, p.CloseLog())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop %s: %w", p.Spec.Name, err)
	}
	return p.journal.remove(p.name)
}

// killProcessGroup kills the group and waits until it is empty, which takes longer on a busy
// machine. The leader's number stays in use while the group has members.
func (p *proc) killProcessGroup() error {
	pgid := p.cmd.Process.Pid
	p.noteWorkers()
	if len(p.members()) > 0 {
		_ = unix.Kill(-pgid, unix.SIGKILL) // all of it may have gone already
	}
	p.mu.Lock()
	for pid, born := range p.workers {
		if cgroup.Born(pid) == born {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	p.mu.Unlock()
	deadline := time.After(killBound)
	select {
	case <-p.Exited():
	case <-deadline:
		return fmt.Errorf("process %d still exists %v after it was killed; %s", pgid, killBound,
			stuck)
	}
	for {
		remaining := p.members()
		if len(remaining) == 0 {
			p.killDaemon()
			return nil
		}
		select {
		case <-deadline:
			return fmt.Errorf("processes %v still exist %v after they were killed; %s", remaining,
				killBound, stuck)
		case <-time.After(time.Millisecond):
		}
	}
}

// become describes the change of user as options of setpriv.
func become(e entry.Entry) string {
	if e.User == os.Geteuid() {
		return ""
	}
	peers := "--clear-groups"
	if len(e.Others) > 0 {
		peers = "--groups=" + cgroup.CoreList(e.Others) // numbers with commas between them
	}
	return fmt.Sprintf("--reuid=%d --regid=%d %s", e.User, e.Group, peers)
}

// line returns the shell command that has the same effect as an entry. A process that writes 0 into
// a group's list joins the group (cgroups(7)).
func line(e entry.Entry, dir string) string {
	var parts []string
	for _, group := range e.Groups {
		parts = append(parts, "echo 0 >", cmdlog.Quote(group+"/cgroup.procs"), "&&")
	}
	parts = append(parts, "exec env -i")
	for _, pair := range e.Env {
		parts = append(parts, cmdlog.Variable(pair))
	}
	parts = append(parts, "setpriv --no-new-privs")
	if os.Geteuid() == 0 {
		parts = append(parts, strings.TrimSpace("--bounding-set=-all --inh-caps=-all "+become(e)))
	}
	if len(e.Cores) > 0 {
		parts = append(parts, "taskset -c", cgroup.CoreList(e.Cores))
	}
	if e.Data > 0 {
		parts = append(parts, fmt.Sprintf("prlimit --data=%d", e.Data))
	}
	args := append([]string{e.Path}, e.Args[1:]...)
	return cmdlog.In(dir, append(parts, cmdlog.Join(args))...)
}

var _ launch.Mover = (*proc)(nil)

// movePasses bounds the search for threads that were born on the old cores meanwhile: only a thread
// that was not yet moved creates them, so two or three passes find all.
const movePasses = 100

// Move implements launch.Mover. It changes the control group first, since no affinity may exceed
// it. It then sets the affinity too: threads with an affinity of their own, which this launcher
// sets, keep it within any wider group (sched_setaffinity(2), cpuset(7)).
func (p *proc) Move(cores []int) error {
	list := cgroup.CoreList(cores)
	p.Spec.Cores = cores
	dir, _ := cgroup.Find(p.groups.list, "cpuset")
	if dir != "" && cgroup.Value(dir, "cpuset.cpus") != "" {
		if err := cgroup.Write(dir, "cpuset.cpus", list); err != nil {
			return fmt.Errorf("move %s to cores %s: %w", p.Spec.Name, list, err)
		}
	}
	cmdlog.Run("taskset", "-a", "-c", "-p", list, strconv.Itoa(p.Main()))
	for range movePasses {
		moved, err := p.allow(cores)
		if err != nil {
			return fmt.Errorf("move %s to cores %s: %w", p.Spec.Name, list, err)
		}
		if moved == 0 {
			p.noteLimits()
			return nil
		}
	}
	return fmt.Errorf("move %s to cores %s: after %d passes, some threads still run on other cores",
		p.Spec.Name, list, movePasses)
}

// Favour implements launch.Favourer.
func (p *proc) Favour(enabled bool) (int, error) { return cgroup.Favour(p.PIDs(), enabled) }

// allow sets the affinity of all threads to the cores, and returns the number of threads that had
// another.
func (p *proc) allow(cores []int) (moved int, err error) {
	var want, have unix.CPUSet
	for _, core := range cores {
		want.Set(core)
	}
	elsewhere := func(_, tid int) bool { // false if the thread has ended
		return unix.SchedGetaffinity(tid, &have) == nil && have != want
	}
	for _, tid := range cgroup.Tasks(p.PIDs(), elsewhere) {
		if err := unix.SchedSetaffinity(tid, &want); err == nil {
			moved++
		} else if !errors.Is(err, unix.ESRCH) {
			return moved, err
		}
	}
	return moved, nil
}
