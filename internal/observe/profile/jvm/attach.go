package jvm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/internal/observe/profile"
)

// attachPoll is the time between checks for a JVM's socket, which opens within milliseconds of the
// signal.
const attachPoll = 10 * time.Millisecond

// answerBytes limits the size of a JVM's response to a command.
const answerBytes = 16 << 20

// target is a JVM that accepts commands over HotSpot's attach socket, as jcmd sends them (src/
// jdk.attach/linux/classes/sun/tools/attach/VirtualMachineImpl.java). jcmd itself is a JVM, which
// would use half a second of processor time next to a measurement.
type target struct {
	pid   int
	inner string // its pid in its own namespace, which names its files
	tmp   string // its /tmp, as a path in this namespace
}

// find looks a JVM up. Other processes are an error, because the signal that opens the socket would
// end them.
func find(pid int) (target, error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return target{}, fmt.Errorf("find JVM %d: %w", pid, err)
	}
	if !strings.Contains(string(maps), "/libjvm.so") {
		return target{}, fmt.Errorf("find JVM %d: the process has no libjvm.so mapped; it may be "+
			"a native image, or a wrapper script with the JVM as its child", pid)
	}
	t := target{pid: pid, inner: profile.Inner(pid), tmp: fmt.Sprintf("/proc/%d/root/tmp", pid)}
	if !t.listens() && !profile.Handles(pid, syscall.SIGQUIT) {
		return target{}, fmt.Errorf("attach to JVM %d: the JVM is still starting and does not "+
			"handle SIGQUIT yet", pid)
	}
	return t, nil
}

func (t target) socket() string {
	return filepath.Join(t.tmp, ".java_pid"+t.inner)
}

// listens reports whether the JVM's socket is open. The file's existence is not enough: a killed
// JVM with the same pid leaves it behind.
func (t target) listens() bool {
	conn, err := net.Dial("unix", t.socket())
	if err != nil {
		return false
	}
	_ = conn.Close() // nothing was sent
	return true
}

// open makes the JVM open its socket: it creates the file that requests it, and sends the signal
// that makes the JVM check.
func (t target) open(ctx context.Context) error {
	if t.listens() {
		return nil
	}
	request := filepath.Join(t.tmp, ".attach_pid"+t.inner)
	_ = os.Remove(request) // left by a killed JVM, or a link that any user may have made
	f, err := os.OpenFile(request, os.O_CREATE|os.O_EXCL|os.O_WRONLY|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("attach to JVM %d: %w", t.pid, err)
	}
	defer func() { _ = os.Remove(request) }() // the JVM may already have removed it
	if err := f.Close(); err != nil {
		return fmt.Errorf("attach to JVM %d: %w", t.pid, err)
	}
	if err := syscall.Kill(t.pid, syscall.SIGQUIT); err != nil {
		return fmt.Errorf("attach to JVM %d: %w", t.pid, err)
	}
	for range clock.Every(ctx, attachPoll) {
		if t.listens() {
			return nil
		}
	}
	return fmt.Errorf("attach to JVM %d: the JVM did not open %s: %w; it may run with "+
		"-XX:+DisableAttachMechanism", t.pid, t.socket(), ctx.Err())
}

// command sends a command with up to three arguments, and returns the response without its status
// line.
func (t target) command(ctx context.Context, name string, args ...string) (string, error) {
	if err := t.open(ctx); err != nil {
		return "", err
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", t.socket())
	if err != nil {
		return "", fmt.Errorf("attach to JVM %d: %w", t.pid, err)
	}
	defer func() { _ = conn.Close() }() // everything was read, or another error is returned
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	words := append([]string{"1", name}, args...)
	for len(words) < 5 {
		words = append(words, "")
	}
	if _, err := io.WriteString(conn, strings.Join(words, "\x00")+"\x00"); err != nil {
		return "", fmt.Errorf("send JVM %d the command %s: %w", t.pid, name, err)
	}
	text, err := io.ReadAll(io.LimitReader(conn, answerBytes))
	if err != nil {
		return "", fmt.Errorf("send JVM %d the command %s: %w",
			t.pid, name, errors.Join(err, ctx.Err()))
	}
	status, answer, _ := strings.Cut(string(text), "\n")
	if strings.TrimSpace(status) != "0" {
		return answer, fmt.Errorf("send JVM %d the command %s: status %s: %s", t.pid, name, status,
			strings.TrimSpace(answer))
	}
	return answer, nil
}

// jcmd runs a diagnostic command, as the program jcmd does.
func (t target) jcmd(ctx context.Context, command string) (string, error) {
	return t.command(ctx, "jcmd", command)
}

// PerfMap makes JVM 17 or newer write its compiled methods to perf's map file.
func PerfMap(ctx context.Context, pid int) error {
	t, err := find(pid)
	if err == nil {
		_, err = t.jcmd(ctx, "Compiler.perfmap")
	}
	return err
}

// scratch creates a folder that the JVM can write to, even if it runs as another user.
func (t target) scratch(dir, pattern string) (string, error) {
	var owner unix.Stat_t
	if err := unix.Stat(fmt.Sprintf("/proc/%d", t.pid), &owner); err != nil {
		return "", fmt.Errorf("find JVM %d: %w", t.pid, err)
	}
	built, err := os.MkdirTemp(dir, pattern)
	if err == nil && int(owner.Uid) != os.Geteuid() {
		err = os.Chmod(built, 0o777)
	}
	return built, err
}

// agent loads an agent library, or calls its Agent_OnAttach again.
func (t target) agent(ctx context.Context, library, options string) error {
	answer, err := t.command(ctx, "load", library, "true", options)
	if err != nil {
		return err
	}
	// The response is "return code: 0", or "0" before JDK 9.
	code := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(answer), "return code:"))
	if code != "0" {
		return fmt.Errorf("load %s into JVM %d: return code %s", filepath.Base(library), t.pid,
			code)
	}
	return nil
}
