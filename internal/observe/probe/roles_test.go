package probe

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// crowd is a /proc of one process, 7, whose threads a test starts and ends.
type crowd struct {
	t   testing.TB
	dir string
}

func newCrowd(t testing.TB) crowd {
	c := crowd{t, t.TempDir()}
	c.write("stat", "7 (java) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0")
	if err := os.Mkdir(c.path("task"), 0o755); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c crowd) path(name string) string { return filepath.Join(c.dir, "7", name) }

func (c crowd) write(name, text string) {
	c.t.Helper()
	if err := os.MkdirAll(filepath.Dir(c.path(name)), 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(c.path(name), []byte(text), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// thread creates or changes a thread. Lengths must stay equal, because the files are not created
// again at each read as the kernel's are.
func (c crowd) thread(tid int, name string, runNs, waitNs int64) {
	c.write(fmt.Sprintf("task/%d/comm", tid), name+"\n")
	c.write(fmt.Sprintf("task/%d/schedstat", tid), fmt.Sprintf("%012d %012d 5\n", runNs, waitNs))
}

func (c crowd) end(tid int) {
	c.t.Helper()
	if err := os.RemoveAll(c.path(fmt.Sprintf("task/%d", tid))); err != nil {
		c.t.Fatal(err)
	}
}

func TestRoles(t *testing.T) {
	c := newCrowd(t)
	r := newRoles(c.dir)
	defer r.close()
	pids := []int{7}
	check := func(what string, got, want Roles) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	c.thread(7, "java", 900, 90)
	check("nothing is named", r.reread(pids), Roles{})
	c.thread(8, "java", 100, 10) // without its final name
	r.reread(pids)
	c.thread(8, "C2 CompilerThre", 110, 10)
	c.thread(9, "C1 CompilerThre", 20, 5)
	c.thread(10, "GC Thread#0", 30, 7)
	c.thread(11, "V8Worker", 40, 8)
	first := Roles{Named: true, CompilerNs: 130, CompilerWaitNs: 15, CollectorNs: 30, EitherNs: 40}
	check("named", r.reread(pids), first)

	// Between two listings, the same threads count.
	c.thread(8, "C2 CompilerThre", 210, 20)
	c.thread(12, "C2 CompilerThre", 1000, 0)
	r.read()
	check("between", r.last(), Roles{true, 230, 25, 30, 40})
	check("new", r.reread(pids), Roles{true, 1230, 25, 30, 40})

	// An ended thread keeps its counters, and its number may be reused.
	c.end(12)
	check("ended", r.reread(pids), Roles{true, 1230, 25, 30, 40})
	c.thread(12, "G1 Service", 1, 0)
	check("reused", r.reread(pids), Roles{true, 1230, 25, 31, 40})

	// So does a process that ended or is no longer listed.
	if err := os.RemoveAll(filepath.Join(c.dir, "7")); err != nil {
		t.Fatal(err)
	}
	check("process ended", r.reread(pids), Roles{true, 1230, 25, 31, 40})
	check("process gone", r.reread(nil), Roles{true, 1230, 25, 31, 40})
	if len(r.all)+len(r.named)+len(r.tasks.rows) > 0 {
		t.Errorf("%d threads, %d named and %d processes are left", len(r.all), len(r.named),
			len(r.tasks.rows))
	}
	want := record.Roles{CompilerNs: 1100, CompilerWaitNs: 10, GCNs: 1}
	if got := first.between(r.last()); got == nil || *got != want {
		t.Errorf("between: %+v, want %+v", got, want)
	}
	if got := first.between(Roles{}); got != nil {
		t.Errorf("of nothing that has a name: %+v", got)
	}
}

// TestRolesWithoutCounters checks that nothing is known if a kernel writes zeros.
func TestRolesWithoutCounters(t *testing.T) {
	c := newCrowd(t)
	c.thread(8, "C2 CompilerThre", 0, 0)
	r := newRoles(c.dir)
	defer r.close()
	if got := r.reread([]int{7}); got.Named {
		t.Errorf("known: %+v", got)
	}
}

// TestRolesAllocateNothing checks a listing of known threads, and a reading.
func TestRolesAllocateNothing(t *testing.T) {
	c := newCrowd(t)
	for i := range 50 {
		c.thread(100+i, "http-nio-8080-e", 1, 1)
	}
	c.thread(8, "C2 CompilerThre", 5, 5)
	r := newRoles(c.dir)
	defer r.close()
	pids := []int{7}
	for range looks {
		r.reread(pids)
	}
	if n := testing.AllocsPerRun(100, func() { r.reread(pids) }); n != 0 {
		t.Errorf("%v allocations a listing", n)
	}
	if len(r.all) != 51 || len(r.named) != 1 {
		t.Errorf("%d threads, %d with a role", len(r.all), len(r.named))
	}
}

// TestLiveRoles compares the counters of a real thread with a compiler's name with the process's
// measurement, during the thread's life and after its end.
func TestLiveRoles(t *testing.T) {
	b := startBurner(t)
	b.ask("name")
	s, err := Start(Config{Period: 5 * time.Millisecond}, Subject{PIDs: b.pids})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	before := s.Mark()
	used := b.ask("compile")
	lived := s.Mark()
	near(t, "compiler", float64(lived.Roles.CompilerNs-before.Roles.CompilerNs), used, grain)
	if !lived.Roles.Named || lived.Roles.CollectorNs != 0 {
		t.Errorf("%+v, then %+v", before.Roles, lived.Roles)
	}
	b.ask("end")
	other := b.burn() // on a thread without a name
	after := s.Mark()
	u, _ := Between(before, after, s.Series(), 1, 1)
	if u.Roles == nil {
		t.Fatal("nothing is known of roles")
	}
	near(t, "compiler that has ended", float64(u.Roles.CompilerNs), used, grain)
	near(t, "all", float64(u.CPUNs), used+other, 2*grain)
}

// TestLiveRolesOfJVM observes a JVM, which compiles during its start.
func TestLiveRolesOfJVM(t *testing.T) {
	java, err := exec.LookPath("java")
	if err != nil {
		t.Skip("java is not installed")
	}
	testsets.Measured(t)
	dir := t.TempDir()
	source := filepath.Join(dir, "Idle.java")
	if err := os.WriteFile(source, []byte(`public class Idle {
  public static void main(String[] args) throws Exception { System.gc(); Thread.sleep(60000); }
}`), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(java, "-XX:+UseG1GC", source) // javac in it keeps its compilers busy
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s, err := Start(Config{}, Subject{PIDs: func() []int { return []int{cmd.Process.Pid} }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	var got Roles
	for range 100 {
		time.Sleep(100 * time.Millisecond)
		if got = s.Roles(); got.CompilerNs > 50e6 && got.CollectorNs > 0 {
			break
		}
	}
	total := s.Mark().CPUNs
	if !got.Named || got.CompilerNs < 50e6 || got.CollectorNs <= 0 || got.EitherNs != 0 ||
		got.CompilerNs+got.CollectorNs > total {
		t.Errorf("%+v of %d ns", got, total)
	}
}

// BenchmarkRoles measures the cost of roles for a sample, and once a second for the listing of
// threads: a JVM's twelve threads with a role and two hundred others.
func BenchmarkRoles(b *testing.B) {
	pid, end := namedThreads(b, 12, 200)
	defer end()
	r := newRoles("/proc")
	defer r.close()
	pids := []int{pid}
	for range looks {
		r.reread(pids)
	}
	b.Run("sample", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.read()
		}
		b.ReportMetric(float64(len(r.named)), "named")
	})
	b.Run("listing", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.reread(pids)
		}
		b.ReportMetric(float64(len(r.all)), "threads")
	})
}

// namedThreads starts a child with threads with and without a role; all sleep.
func namedThreads(t testing.TB, named, others int) (pid int, end func()) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1", "GOMAXPROCS=2")
	in, toChild, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = in
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	fmt.Fprintf(toChild, "crowd %d %d\n", named, others)
	if _, err := out.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid, func() {
		toChild.Close()
		_ = cmd.Wait()
	}
}

// setName sets the calling thread's name (proc(5), comm).
func setName(name string) {
	err := os.WriteFile(fmt.Sprintf("/proc/self/task/%d/comm", unix.Gettid()), []byte(name), 0)
	if err != nil {
		panic(err)
	}
}
