package jvm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	pprof "github.com/google/pprof/profile"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/observe/profile"
	"prony.example/internal/observe/profile/profiletest"
)

// split starts the test program of profiles.
func split(t *testing.T, flags ...string) profile.Subject {
	t.Helper()
	return started(t, "testdata/Split.java", flags...)
}

// started starts a program, which ends with its input.
func started(t *testing.T, program string, flags ...string) profile.Subject {
	t.Helper()
	testsets.Once(t, "a profiler of JVMs", testsets.Needs{Facts: []string{
		testsets.Version("java", "-version")}})
	testsets.Measured(t)
	java, err := exec.LookPath("java")
	if err != nil {
		t.Skip("needs a JDK: ", err)
	}
	args := append([]string{"-Xmx64m", "-XX:+UseSerialGC"}, flags...)
	cmd := exec.Command(java, append(args, program)...)
	profiletest.Start(t, cmd)
	return profile.Subject{PID: cmd.Process.Pid, Runtime: "jvm", Dir: t.TempDir()}
}

// TestTruth takes profiles of all kinds of one process in sequence; each must show three to one.
// JFR gets its own process, because async-profiler takes over SIGPROF, and with it JFR's CPU
// timers, for the JVM's life.
func TestTruth(t *testing.T) {
	for _, c := range []profile.Collector{AsyncProfiler{}, JFR{}} {
		t.Run(c.Name(), func(t *testing.T) {
			if c.Name() == "async-profiler" {
				testsets.Long(t, "async-profiler", testsets.Needs{Facts: []string{
					testsets.Version("java", "-version")}})
			}
			s := split(t)
			if c.Name() == "async-profiler" {
				s.Tools.AsyncProfiler = profiletest.AsyncProfiler(t)
			}
			take := func(kind string) *pprof.Profile {
				return profiletest.Take(t, c, s, kind, 2*time.Second)
			}
			cpu := take(profile.CPU)
			// Before JDK 25, JFR gets no samples in spin's loop, as its note says.
			if !strings.Contains(strings.Join(profile.Notes(cpu), "; "), "ExecutionSample") {
				profiletest.Split(t, cpu, "Split.three", "Split.one",
					held(cpu, "Split.three", "Split.one"))
			}
			alloc := take(profile.Alloc)
			if c.Name() == "async-profiler" { // JFR's samples are biased, as its note says
				profiletest.Split(t, alloc, "Split.allocThree", "Split.allocOne",
					profile.Samples(alloc))
			}
			profiletest.Has(t, alloc, "Split.allocThree", "byte[]")
			lock := take(profile.Lock)
			profiletest.Has(t, lock, "Split.hold", "ReentrantLock")
			off := take(profile.OffCPU)
			profiletest.Split(t, off, "Split.napThree", "Split.napOne", held(off, "Split.nap"))
			if left, err := os.ReadDir(s.Dir); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, error %v", left, err)
			}
		})
	}
}

// held returns the number of samples that include one of the functions.
func held(p *pprof.Profile, names ...string) (n int64) {
	for _, s := range p.Sample {
		if slices.ContainsFunc(s.Location, func(l *pprof.Location) bool {
			return slices.Contains(names, l.Line[0].Function.Name)
		}) {
			n += s.Value[0]
		}
	}
	return n
}

// TestOthersAreLeftAlone checks that other processes never get the signal, which would end this
// test.
func TestOthersAreLeftAlone(t *testing.T) {
	check := func(pid int, want string) {
		t.Helper()
		if _, err := find(pid); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("process %d: error %v, want %q", pid, err, want)
		}
	}
	check(os.Getpid(), "no libjvm.so mapped")
	check(1<<22+1, "no such file") // beyond the kernel's largest pid
}

// TestPinned checks that a recording counts virtual threads that blocked their carrier threads. It
// needs a JDK with virtual threads, which Debian keeps beside the default one.
func TestPinned(t *testing.T) {
	javas, err := filepath.Glob("/usr/lib/jvm/*-25-*/bin/javac")
	if err != nil || len(javas) == 0 {
		t.Skip("needs a JDK 25 in /usr/lib/jvm")
	}
	t.Setenv("PATH", filepath.Dir(javas[0])+":"+os.Getenv("PATH"))
	s := started(t, "testdata/Pinned.java")
	p := profiletest.Take(t, JFR{}, s, profile.CPU, 200*time.Millisecond)
	notes := strings.Join(profile.Notes(p), "; ")
	const blocked = "virtual threads: blocked "
	if !strings.Contains(notes, blocked) || strings.Contains(notes, blocked+"0 times") {
		t.Errorf("notes %q", notes)
	}
	none := strings.Join((&reading{}).notes(), "; ")
	if !strings.Contains(none, blocked+"0 times") {
		t.Errorf("notes without an event %q", none)
	}
}

// TestAttach checks a JVM with -Xrs, which takes no signals and opens its socket at its start, and
// a JVM with a disabled attach mechanism, which gives an error.
func TestAttach(t *testing.T) {
	check := func(flag, want string, wait time.Duration) {
		t.Helper()
		s := split(t, flag)
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		_, err := JFR{}.Start(ctx, s, profile.CPU)
		if want == "" && err != nil || want != "" && (err == nil ||
			!strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", flag, err, want)
		}
		if left, err := os.ReadDir(s.Dir); want != "" && (err != nil || len(left) > 0) {
			t.Errorf("%s: left behind: %v, error %v", flag, left, err)
		}
	}
	check("-Xrs", "", profiletest.Limit)
	check("-XX:+DisableAttachMechanism", "it may run with -XX:+DisableAttachMechanism",
		2*time.Second)
}

// TestPerfMap checks that a JVM writes its generated code to perf's map file.
func TestPerfMap(t *testing.T) {
	s := split(t)
	path := fmt.Sprintf("/tmp/perf-%d.map", s.PID)
	t.Cleanup(func() { _ = os.Remove(path) }) // it may not exist
	ctx, cancel := context.WithTimeout(t.Context(), profiletest.Limit)
	defer cancel()
	if err := PerfMap(ctx, s.PID); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || !bytes.Contains(text, []byte("Interpreter")) {
		t.Errorf("it wrote %.200q, error %v", text, err)
	}
}

// TestScratch checks that a JVM of another user, as in a container, can write to its folder.
func TestScratch(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to be somebody else")
	}
	for uid, want := range map[uint32]os.FileMode{0: 0o700, 65534: 0o777} {
		cmd := exec.Command("sleep", "60")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid}}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		dir, err := target{pid: cmd.Process.Pid}.scratch(t.TempDir(), "x-")
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("user %d: mode %v, error %v; want %v", uid, info.Mode(), err, want)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Error("it was not killed")
		}
	}
}

// TestFilesOfTheJVM checks that no link of the JVM's user is followed: neither to read what the JVM
// should have written, nor to write for it.
func TestFilesOfTheJVM(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := errors.Join(os.WriteFile(secret, []byte("key"), 0o600),
		os.Symlink(secret, filepath.Join(dir, "log")), os.WriteFile(filepath.Join(dir, "samples"),
			[]byte("a 1"), 0o600)); err != nil {
		t.Fatal(err)
	}
	s := &session{dir: dir}
	if text, err := s.read("samples"); err != nil || string(text) != "a 1" {
		t.Errorf("a file: %q, %v", text, err)
	}
	if text, err := s.read("log"); err == nil {
		t.Errorf("through a link it read %q", text)
	}
	if err := create(filepath.Join(dir, "log"), []byte("x")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a link is written: %v", err)
	}
	if text, err := os.ReadFile(secret); err != nil || string(text) != "key" {
		t.Errorf("the file behind it is %q, %v", text, err)
	}
}
