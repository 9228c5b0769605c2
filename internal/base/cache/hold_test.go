package cache

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// holder is the environment variable that makes this test binary hold a stamp.
const holder = "PRONY_TEST_HOLDS"

func TestMain(m *testing.M) {
	stamp := os.Getenv(holder)
	if stamp == "" {
		os.Exit(m.Run())
	}
	if err := Hold(stamp, time.Unix(1e9, 0)); err != nil {
		panic(err)
	}
	runtime.GC() // closes unreferenced files
	runtime.GC()
	if _, err := os.Stdout.WriteString("held\n"); err != nil {
		panic(err)
	}
	_, _ = bufio.NewReader(os.Stdin).ReadByte() // until the test has checked
}

// isFree calls Free and releases the stamp.
func isFree(t *testing.T, stamp string) bool {
	t.Helper()
	release, free, err := Free(stamp)
	if err != nil {
		t.Fatal(err)
	}
	if free {
		release()
	}
	return free
}

// TestHoldOfAnotherProgram checks that another program's hold ends only with that program.
func TestHoldOfAnotherProgram(t *testing.T) {
	stamp := filepath.Join(t.TempDir(), "a.used")
	if !isFree(t, stamp) {
		t.Error("what nobody holds is not free")
	}
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), holder+"="+stamp)
	in, errIn := other.StdinPipe()
	out, errOut := other.StdoutPipe()
	if errIn != nil || errOut != nil || other.Start() != nil {
		t.Fatalf("%v, %v", errIn, errOut)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != "held" {
		t.Fatalf("it says %q, %v", line, err)
	}
	if isFree(t, stamp) {
		t.Error("it is free though another program holds it")
	}
	if err := Hold(stamp, time.Unix(2e9, 0)); err != nil {
		t.Errorf("two cannot hold it: %v", err)
	}
	if info, err := os.Stat(stamp); err != nil || info.ModTime().Unix() != 2e9 {
		t.Errorf("it was last used at %v, %v", info.ModTime(), err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := other.Wait(); err != nil {
		t.Fatal(err)
	}
	if isFree(t, stamp) {
		t.Error("it is free though this program holds it")
	}
}

func TestHoldEndsWithTheProgram(t *testing.T) {
	stamp := filepath.Join(t.TempDir(), "a.used")
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), holder+"="+stamp)
	if out, err := other.CombinedOutput(); err != nil || string(out) != "held\n" {
		t.Fatalf("%s, %v", out, err)
	}
	if !isFree(t, stamp) {
		t.Error("it is held by a program that has ended")
	}
	if err := Hold(filepath.Join(stamp, "b"), time.Time{}); err == nil {
		t.Error("held what cannot be")
	}
	if _, _, err := Free(filepath.Join(stamp, "b")); err == nil {
		t.Error("free what cannot be")
	}
}
