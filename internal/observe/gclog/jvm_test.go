package gclog

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/dev/testsets"
)

// java returns the path of a JDK: of JAVA_HOME, the newest in Debian's folders, or in PATH.
func java(t *testing.T) string {
	t.Helper()
	if home := os.Getenv("JAVA_HOME"); home != "" {
		return filepath.Join(home, "bin", "java")
	}
	found, err := filepath.Glob("/usr/lib/jvm/*-25-*/bin/java")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) > 0 {
		return found[0]
	}
	path, err := exec.LookPath("java")
	if err != nil {
		t.Skip("no java: set JAVA_HOME to a JDK of 25 or newer")
	}
	return path
}

// TestAgainstTheJVMsOwnCounts compares the log with a program that counts its allocation and with
// beans that count pauses. It also shows that the log's times are System.nanoTime, because the
// window's times are.
func TestAgainstTheJVMsOwnCounts(t *testing.T) {
	testsets.Whole(t, "what a JVM counts itself") // before java's version is requested
	java, classes := java(t), t.TempDir()
	testsets.Once(t, "what a JVM counts itself", testsets.Needs{Facts: []string{
		testsets.Version(java, "--version")}})
	testsets.Reads(t, "testdata/Allocate.java")
	javac := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(java), "javac"), "-d",
		classes, "testdata/Allocate.java")
	if out, err := javac.CombinedOutput(); err != nil {
		t.Skipf("%s has no working compiler beside it: %v: %s", java, err, out)
	}
	for _, name := range []string{"G1", "Serial", "Parallel", "Z", "Shenandoah"} {
		file := filepath.Join(t.TempDir(), "gc.log")
		cmd := exec.CommandContext(t.Context(), java, "-Xmx256m", "-XX:+Use"+name+"GC",
			strings.ReplaceAll(LogOption, "{file}", file), "-cp", classes, "Allocate", "2048")
		out, err := cmd.CombinedOutput()
		if err != nil && strings.Contains(string(out), "Option -XX:+Use"+name+"GC not supported") {
			t.Logf("this JVM has no %s", name)
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		said := string(out[max(0, strings.Index(string(out), "from ")):])
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		l, err := Read(f)
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if err != nil || l.Skipped > 0 {
			t.Errorf("%s: %v, %q", name, err, l.Problems)
		}
		if err := agree(l, said); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// agree compares a log with what the program printed.
func agree(l Log, said string) error {
	var from, to, bytes, count, millis int64
	if _, err := fmt.Sscanf(said, "from %d to %d bytes %d count %d millis %d", &from, &to, &bytes,
		&count, &millis); err != nil {
		return fmt.Errorf("%w: %q", err, said)
	}
	g := l.Window(from, to)
	// The log's sizes are multiples of MiB, or of ZGC's pages of 2 MiB, of which each thread leaves
	// one half full.
	if off := float64(g.AllocatedBytes)/float64(bytes) - 1; off < -0.12 || off > 0.12 {
		return fmt.Errorf("%d bytes allocated, the program knows of %d", g.AllocatedBytes, bytes)
	}
	var pauses int64
	for _, e := range l.During(from, to) {
		if e.GC {
			pauses++
		}
	}
	// A collection may be at an edge, between the readings of the clock and of the beans: of one
	// pause, with ZGC of three.
	edge := int64(1)
	if l.Collector == "ZGC" {
		edge = 3
	}
	if d := pauses - count; d < -edge || d > edge {
		return fmt.Errorf("%d pauses, the beans counted %d", pauses, count)
	}
	// The beans' time is within the safepoint, except for Shenandoah's, which also counts whole
	// milliseconds of concurrent work.
	if l.Collector != "Shenandoah" && g.PauseNs < (millis-1)*1e6 {
		return fmt.Errorf("pauses of %d ns, the beans counted %d ms", g.PauseNs, millis)
	}
	return nil
}
