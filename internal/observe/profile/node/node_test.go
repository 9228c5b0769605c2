package node

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/observe/profile"
	"prony.example/internal/observe/profile/profiletest"
)

// split starts the test program, which ends with its input.
func split(t *testing.T, flags ...string) profile.Subject {
	t.Helper()
	testsets.Once(t, "a profiler of Node", testsets.Needs{Facts: []string{
		testsets.Version("node", "--version")}})
	testsets.Measured(t)
	program, err := exec.LookPath("node")
	if err != nil {
		t.Skip("needs Node: ", err)
	}
	cmd := exec.Command(program, append(flags, "testdata/split.js")...)
	profiletest.Start(t, cmd)
	return profile.Subject{PID: cmd.Process.Pid, Runtime: "node"}
}

func TestTruth(t *testing.T) {
	// Its inspector is closed: the signal opens it. Inlining is disabled, because V8 attributes
	// allocations of inlined functions to their caller.
	s := split(t, "--max-inlined-bytecode-size=0")
	cpu := profiletest.Take(t, V8{}, s, profile.CPU, time.Second)
	profiletest.Split(t, cpu, "three (testdata/split.js)", "one (testdata/split.js)",
		profile.Samples(cpu))
	profiletest.Has(t, cpu, "turn (testdata/split.js)", "three (testdata/split.js)")
	if notes := strings.Join(profile.Notes(cpu), "; "); !strings.Contains(notes, "SIGUSR1") {
		t.Errorf("the notes are %q", notes)
	}
	alloc := profiletest.Take(t, V8{}, s, profile.Alloc, time.Second) // already open
	profiletest.Split(t, alloc, "allocThree (testdata/split.js)", "allocOne (testdata/split.js)",
		profile.Samples(alloc))
}

// TestOwnNetwork checks a container's network, whose 127.0.0.1 is another host.
func TestOwnNetwork(t *testing.T) {
	testsets.Once(t, "a profiler of Node", testsets.Needs{Facts: []string{
		testsets.Version("node", "--version")}})
	testsets.Measured(t)
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("needs Node: ", err)
	}
	if _, err := exec.LookPath("ip"); err != nil || os.Getuid() != 0 {
		t.Skip("needs root and ip of iproute2, to make a network")
	}
	cmd := exec.Command("sh", "-c", `ip link set lo up && exec "$0" testdata/split.js`, node)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	profiletest.Start(t, cmd)
	s := profile.Subject{PID: cmd.Process.Pid, Runtime: "node"}
	cpu := profiletest.Take(t, V8{}, s, profile.CPU, time.Second)
	profiletest.Split(t, cpu, "three (testdata/split.js)", "one (testdata/split.js)",
		profile.Samples(cpu))
	home := network(t, "self")
	for range 300 {
		_, err := inNetworkOf(s.PID, func() (net.Conn, error) {
			if now := network(t, "thread-self"); now == home {
				t.Error("it is not in the other network")
			}
			if now := network(t, "self"); now != home {
				t.Error("it took the main thread, by which others read counters of this network")
			}
			return nil, nil
		})
		if err != nil || t.Failed() {
			t.Fatal(err)
		}
	}
	threads, err := filepath.Glob("/proc/self/task/*")
	if err != nil || len(threads) == 0 {
		t.Fatal(threads, err)
	}
	for _, thread := range threads {
		now, err := os.Readlink(filepath.Join(thread, "ns", "net"))
		if err == nil && now != home { // otherwise it has ended
			t.Errorf("%s stayed away", thread)
		}
	}
}

// network returns the network namespace of this program or thread.
func network(t *testing.T, of string) string {
	t.Helper()
	name, err := os.Readlink("/proc/" + of + "/ns/net")
	if err != nil {
		t.Error(err)
	}
	return name
}

func TestFrames(t *testing.T) {
	check := func(function, url string, line int64, want string) {
		t.Helper()
		if got := frame(function, url, line); got != want {
			t.Errorf("%s of %s:%d is %q, want %q", function, url, line, got, want)
		}
	}
	check("handle", "file:///a/node_modules/router/index.js", 9, "handle (router/index.js)")
	check("q", "file:///a/node_modules/b/node_modules/c/d.js", 9, "q (c/d.js)") // the inner module
	check("serve", "file:///a/b/src/serve.js", 9, "serve (src/serve.js)")
	check("serve", "/serve.js", 9, "serve (/serve.js)")
	check("", "file:///a/b/src/serve.js", 9, "(anonymous) (src/serve.js:10)") // V8 counts from 0
	check("emit", "node:events", 465, "emit (node:events)")
	check("(program)", "", -1, "(program)")
}

// TestReadCPU reads samples of 1 ms, 2 ms and 4 ms. The second is idle, so the profile has 5 ms.
func TestReadCPU(t *testing.T) {
	const nodes = `{"profile":{"nodes":[
		{"id":1,"callFrame":{"functionName":"(root)"},"children":[2,3]},
		{"id":2,"callFrame":{"functionName":"(idle)"}},
		{"id":3,"callFrame":{"functionName":"a"},"children":[4]},
		{"id":4,"callFrame":{"functionName":"b"}}],"startTime":0,"endTime":7000,`
	check := func(rest, want, fails string) {
		t.Helper()
		stacks := profile.NewStacks(profile.CPU)
		err := readCPU(json.RawMessage(nodes+rest), stacks)
		if fails == "" && err != nil || fails != "" && (err == nil ||
			!strings.Contains(err.Error(), fails)) {
			t.Errorf("%s: error %v, want %q", rest, err, fails)
		}
		if got := string(profile.Folded(stacks.Profile())); got != want {
			t.Errorf("%s: the stacks are %q, want %q", rest, got, want)
		}
	}
	check(`"samples":[3,2,4],"timeDeltas":[1000,2000,4000]}}`, "a 1000000\na;b 4000000\n", "")
	check(`"samples":[3],"timeDeltas":[-5]}}`, "", "") // V8's clock may step back: 0
	check(`"samples":[3,2],"timeDeltas":[1000]}}`, "", "the profile has 2 samples, but 1 times")
	check(`"samples":[9],"timeDeltas":[1000]}}`, "", "node 9, which does not exist")
	loop := strings.Replace(nodes, `"b"}`, `"b"},"children":[3]`, 1)
	if err := readCPU(json.RawMessage(loop+`"samples":[]}}`), nil); err == nil ||
		!strings.Contains(err.Error(), "node 3 is missing, has no name, or has two") {
		t.Errorf("a tree that is none: error %v", err)
	}
}

// TestRefusals checks that other processes never get the signal, which would end this test.
func TestRefusals(t *testing.T) {
	if err := (V8{}).Fits(profile.Subject{PID: os.Getpid()}); err == nil ||
		!strings.Contains(err.Error(), "not node") {
		t.Errorf("this test: error %v", err)
	}
	s := split(t)
	if _, err := (V8{}).Start(t.Context(), s, profile.Lock); err == nil ||
		!strings.Contains(err.Error(), `does not support "lock" profiles`) {
		t.Errorf("locks: error %v", err)
	}
	s.PIDs = []int{s.PID, os.Getpid()} // a worker that is not Node
	if _, err := (V8{}).Start(t.Context(), s, profile.CPU); err == nil {
		t.Error("a worker that is not Node is profiled")
	}
}
