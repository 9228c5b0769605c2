package stalls

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

func TestIdentities(t *testing.T) {
	ours := map[place]bool{{1, 10}: true}
	known := newIdentities(func(core, pid int) bool { return ours[place{core, pid}] })
	known.proc = t.TempDir()
	stat := func(pid int, name, flags string) {
		t.Helper()
		dir := filepath.Join(known.proc, strconv.Itoa(pid))
		text := strconv.Itoa(pid) + " (" + name + ") S 1 2 3 0 -1 " + flags + " 0 0"
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "stat"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	check := func(core, pid int, wantCause, wantName string) {
		t.Helper()
		if cause, name := known.cause(core, pid); cause != wantCause || name != wantName {
			t.Errorf("process %d on core %d: %q %q, want %q %q", pid, core, cause, name, wantCause,
				wantName)
		}
	}
	stat(10, "service", "4194304")
	stat(20, "a (b) c", "4194304")
	stat(30, "ksoftirqd/1", "69238848") // 0x4208040 and PF_KTHREAD
	check(1, 10, "", "")
	check(2, 10, Process, "service") // it belongs to core 1 only
	check(1, 20, Process, "a (b) c")
	check(1, 30, Kernel, "ksoftirqd/1")
	check(1, 40, Process, "40, which has ended")

	// An ended process has the name of its start. Causes are cached until forget.
	known.started(40, "cc1")
	check(1, 40, Process, "40, which has ended")
	known.forget()
	check(1, 40, Process, "cc1")
}

func TestIdentitiesAreBounded(t *testing.T) {
	known := newIdentities(func(int, int) bool { return false })
	for pid := range maxNames + 10 {
		known.started(pid, "x")
	}
	if len(known.ended) != 10 {
		t.Errorf("%d names are remembered", len(known.ended))
	}
}
