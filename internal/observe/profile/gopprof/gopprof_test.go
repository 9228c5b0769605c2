package gopprof

import (
	"net/http"
	"net/http/httptest"
	netpprof "net/http/pprof"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	pprof "github.com/google/pprof/profile"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/observe/profile"
	"prony.example/internal/observe/profile/profiletest"
)

// The test itself is the profiled program: functions three and one do the same work, three three
// times as much.
// of it in one of them.

var sink [2]uint64

func spin(at, n int) {
	x := uint64(88172645463325252)
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	sink[at] = x
}

//go:noinline
func three() { spin(0, 3_000_000) }

//go:noinline
func one() { spin(1, 1_000_000) }

var kept [64][]byte

//go:noinline
func allocThree(i int) { kept[i%64] = make([]byte, 3*4096) }

//go:noinline
func allocOne(i int) { kept[i%64] = make([]byte, 4096) }

// work repeats turn until the test ends.
func work(t *testing.T, turn func(i int)) {
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				turn(i)
			}
		}
	})
	t.Cleanup(func() { close(stop); done.Wait() })
}

func page404(t *testing.T) string {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	return server.URL + "/debug/pprof/"
}

func subject(t *testing.T) profile.Subject {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", netpprof.Index)
	mux.HandleFunc("/debug/pprof/profile", netpprof.Profile)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return profile.Subject{PID: os.Getpid(), Runtime: "native",
		PprofURL: server.URL + "/debug/pprof"}
}

const here = "prony.example/internal/observe/profile/gopprof."

func TestTruthOfCPU(t *testing.T) {
	testsets.Measured(t)
	work(t, func(int) { three(); one() })
	p := profiletest.Take(t, Collector{}, subject(t), profile.CPU, 2*time.Second)
	profiletest.Split(t, p, here+"three", here+"one", profile.Samples(p))
	profiletest.Has(t, p, "TestTruthOfCPU", "three", "spin")
	// 2 s at 100 per second are 200 samples of 10 ms, plus the start and end.
	if total, unit := profile.Total(p); total < 1.5e9 || unit != profile.Nanoseconds {
		t.Errorf("%d %s in all, want 2e9 and more nanoseconds", total, unit)
	}
}

// TestTruthOfAlloc checks that earlier allocation is excluded, and that three has 3 of 4 bytes.
func TestTruthOfAlloc(t *testing.T) {
	for i := range 100_000 {
		before(i)
	}
	work(t, func(i int) { allocThree(i); allocOne(i) })
	p := profiletest.Take(t, Collector{}, subject(t), profile.Alloc, time.Second)
	total, unit := profile.Total(p)
	if unit != profile.Bytes {
		t.Errorf("the unit is %s", unit)
	}
	n := total / int64(runtime.MemProfileRate) // one sample per MemProfileRate bytes
	profiletest.Split(t, p, here+"allocThree", here+"allocOne", n)
	if strings.Contains(string(profile.Folded(p)), "gopprof.before ") {
		t.Errorf("what was there before the start is in it:\n%s", profile.Folded(p))
	}
}

//go:noinline
func before(i int) { kept[i%64] = make([]byte, 8192) }

// TestLockAndBlock checks a goroutine that waits for another one's lock: the lock profile has the
// wait under the function that unlocks, the block profile under the one that waits.
func TestLockAndBlock(t *testing.T) {
	testsets.Whole(t, "every kind of profile")
	runtime.SetBlockProfileRate(1)
	old := runtime.SetMutexProfileFraction(1)
	t.Cleanup(func() { runtime.SetBlockProfileRate(0); runtime.SetMutexProfileFraction(old) })
	var mu sync.Mutex
	work(t, func(int) { mu.Lock(); spin(0, 100_000); holder(&mu) })
	work(t, func(int) { waiter(&mu); spin(1, 100_000); mu.Unlock() })
	p := profiletest.Take(t, Collector{}, subject(t), profile.Lock, time.Second)
	profiletest.Has(t, p, "holder", "sync.(*Mutex).Unlock")
	p = profiletest.Take(t, Collector{}, subject(t), profile.OffCPU, time.Second)
	profiletest.Has(t, p, "waiter", "sync.(*Mutex).Lock")
}

//go:noinline
func holder(mu *sync.Mutex) { mu.Unlock() }

//go:noinline
func waiter(mu *sync.Mutex) { mu.Lock() }

// TestEmptySumSaysWhy checks that an empty sum names the function that enables it.
func TestEmptySumSaysWhy(t *testing.T) {
	session, err := Collector{}.Start(t.Context(), subject(t), profile.OffCPU)
	if err != nil {
		t.Fatal(err)
	}
	p, err := session.Stop(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(profile.Notes(p), "; "); !strings.Contains(notes,
		"runtime.SetBlockProfileRate") {
		t.Errorf("the notes are %q", notes)
	}
}

// TestSumOfOneValue checks a profile that lacks a count before its value.
func TestSumOfOneValue(t *testing.T) {
	answer := pprof.Profile{SampleType: []*pprof.ValueType{{Type: "delay", Unit: "nanoseconds"}}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := answer.Write(w); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	session, err := Collector{}.Start(t.Context(), profile.Subject{PprofURL: server.URL},
		profile.OffCPU)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Stop(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "the profile has no value delay with a count") {
		t.Errorf("error %v", err)
	}
}

func TestRefusals(t *testing.T) {
	check := func(s profile.Subject, kind, want string) {
		t.Helper()
		if _, err := (Collector{}).Start(t.Context(), s, kind); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q of %q: error %v, want %q", kind, s.PprofURL, err, want)
		}
	}
	good := subject(t)
	check(profile.Subject{}, profile.CPU, "has no net/http/pprof")
	check(profile.Subject{PprofURL: "unix:///x"}, profile.CPU, "not an http address")
	check(profile.Subject{PprofURL: page404(t)}, profile.CPU, "404")
	check(profile.Subject{PprofURL: page404(t)}, profile.Alloc, "404")
	check(good, "heat", `does not support "heat" profiles`)
	session, err := Collector{}.Start(t.Context(), good, profile.CPU)
	if err != nil {
		t.Fatal(err)
	}
	check(good, profile.CPU, "another profile") // the program permits one at a time
	if _, err := session.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
