package service

import (
	"slices"
	"strings"
	"testing"
)

func goodService(t *testing.T) *Service {
	t.Helper()
	services, err := Catalog(root(t, map[string]string{"java-good": readGood(t)}))
	if err != nil {
		t.Fatal(err)
	}
	return services[0]
}

func TestCommand(t *testing.T) {
	s := goodService(t)
	t.Setenv("LANG", "its-LANG")
	t.Setenv("TMPDIR", "its-TMPDIR")
	t.Setenv("PATH", "its-{port}") // a value is not expanded again
	t.Setenv("HOME", "its-HOME")
	t.Setenv("JAVA_TOOL_OPTIONS", "-Xmx1m") // not passed on
	b := &Built{Dir: "/b", Tools: map[string]Tool{"java": {Path: "/jdk/bin/java"}}}
	// 1000 MiB and a bit become 1000; three quarters of it are 750. 1.5 processors become 2.
	v := Values{Host: "127.0.0.1", Ports: []int{8081}, CPUs: 1.5, MemoryBytes: 1000<<20 + 4096}
	check := func(target int, wantArgs, wantEnv string) {
		t.Helper()
		starts, err := s.Starts(b, s.Targets[target], v)
		if err != nil || len(starts) != 1 {
			t.Fatal(len(starts), err)
		}
		args, env := starts[0].Args, starts[0].Env
		if got := strings.Join(args, " "); got != wantArgs {
			t.Errorf("arguments\n%s\nwant\n%s", got, wantArgs)
		}
		if got := strings.Join(env, "\n"); got != wantEnv {
			t.Errorf("environment\n%s\nwant\n%s", got, wantEnv)
		}
	}
	const before = "BUDGET=1000\nCPUS=2\nHOME=its-HOME\nHOST=127.0.0.1\nJSON={\"a\": 1}\n" +
		"LANG=its-LANG\nMEMORY_MIB=1000\n"
	const after = "\nPATH=its-{port}\nPORT=8081\nTMPDIR=its-TMPDIR\nWHERE="
	check(0, "/jdk/bin/java -Xmx750m -jar target/app.jar",
		before+"MODE=platform"+after+"http://127.0.0.1:8081")
	check(1, "/jdk/bin/java -Xmx750m -jar target/app.jar -c2", before+"MODE=virtual"+after+"here")
}

func TestCommandErrors(t *testing.T) {
	good := Values{Host: "127.0.0.1", Ports: []int{8081}, CPUs: 1, MemoryBytes: 64 << 20}
	java := map[string]Tool{"java": {Path: "/jdk/bin/java"}}
	check := func(tools map[string]Tool, change func(*Values), want string) {
		t.Helper()
		s, v := goodService(t), good
		v.Ports = []int{8081}
		change(&v)
		_, err := s.Starts(&Built{Dir: "/b", Tools: tools}, s.Targets[1], v)
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	const what = ": a target needs a port, processor time and at least 1 MiB of memory"
	check(java, func(v *Values) { v.Ports[0] = 0 },
		"start java-good/virtual: port 0, 1 CPUs, 67108864 bytes of memory"+what)
	check(java, func(v *Values) { v.CPUs = 0 },
		"start java-good/virtual: port 8081, 0 CPUs, 67108864 bytes of memory"+what)
	check(java, func(v *Values) { v.MemoryBytes = 1 << 19 },
		"start java-good/virtual: port 8081, 1 CPUs, 524288 bytes of memory"+what)
	check(nil, func(*Values) {}, `start java-good/virtual: {java} has no value in "{java}"`)
}

func TestProgramsOfTheBuiltCopy(t *testing.T) {
	check := func(program, want string) {
		s := &Service{Run: Run{Command: []string{program}}, Targets: []Target{{}}}
		starts, err := s.Starts(&Built{Dir: "/b"}, s.Targets[0],
			Values{Ports: []int{1}, CPUs: 1, MemoryBytes: 1 << 20})
		if err != nil || !slices.Equal(starts[0].Args, []string{want}) {
			t.Errorf("%s: got %v, %v, want %s", program, starts, err, want)
		}
	}
	check("{dir}/bin/x", "/b/bin/x")
	check("bin/x", "/b/bin/x")
	check("./x", "/b/x")
	check("/x", "/x")
	check("x", "x") // in PATH
}

// Every JVM and every native image of the catalog gets the same options, from the budget. The
// record's arguments have no dumps: the folder differs between trials.
func TestOptions(t *testing.T) {
	check := func(want, dumps string, command ...string) {
		t.Helper()
		s := &Service{Name: "java-x", Run: Run{Command: command}, Targets: []Target{{}}}
		for _, folder := range []string{"", "/r/dumps/b1"} {
			starts, err := s.Starts(&Built{}, s.Targets[0],
				Values{Ports: []int{1}, CPUs: 2, MemoryBytes: 1 << 30, Dumps: folder})
			if err != nil {
				t.Fatal(err)
			}
			dumping := want
			if folder != "" {
				dumping = strings.Replace(want, " end", dumps+" end", 1)
			}
			if got := strings.Join(starts[0].Args, " "); got != dumping {
				t.Errorf("got %s, want %s", got, dumping)
			}
			if got := strings.Join(starts[0].Written, " "); got != want {
				t.Errorf("the record has %s, want %s", got, want)
			}
		}
	}
	const dump = " -XX:+HeapDumpOnOutOfMemoryError -XX:HeapDumpPath=/r/dumps/b1"
	check("java -Xms64m -Xmx768m -XX:+UseG1GC -XX:+AlwaysPreTouch -XX:ActiveProcessorCount=2 "+
		"-XX:+ExitOnOutOfMemoryError end",
		dump+" -XX:HeapDumpGzipLevel=1 -XX:ErrorFile=/r/dumps/b1/hs_err_pid%p.log",
		"java", "{jvm}", "end")
	check("app -Xms64m -Xmx768m -XX:ActiveProcessorCount=2 -XX:+ExitOnOutOfMemoryError end", dump,
		"app", "{native}", "end")
}

// A container gets no environment of this program and runs the image's own entry point. Its JVM
// gets the sizes of {jvm}. It listens on the network's address, and reaches others by the host's
// name.
func TestContainerCommand(t *testing.T) {
	s := goodService(t)
	t.Setenv("LANG", "its-LANG")
	b := &Built{Images: map[string]string{"": "prony/good:1"}}
	v := Values{Host: "127.0.0.1", Listen: "0.0.0.0", Ports: []int{8081}, CPUs: 1.5,
		MemoryBytes: 1000 << 20}
	starts, err := s.Starts(b, s.Targets[1], v)
	if err != nil {
		t.Fatal(err)
	}
	got := starts[0]
	if got.Image != "prony/good:1" || strings.Join(got.Args, " ") != "-c2" {
		t.Errorf("image %s, arguments %q", got.Image, got.Args)
	}
	want := "BUDGET=1000\nCPUS=2\nHOST=0.0.0.0\n" +
		"JDK_JAVA_OPTIONS=-Xmx750m -XX:ActiveProcessorCount=2\nJSON={\"a\": 1}\n" +
		"MEMORY_MIB=1000\nMODE=virtual\nPORT=8081\nWHERE=here"
	if env := strings.Join(got.Env, "\n"); env != want {
		t.Errorf("environment\n%s\nwant\n%s", env, want)
	}
	s.Targets[1].Runtime = "native"
	starts, err = s.Starts(b, s.Targets[1], v)
	if err != nil || strings.Contains(strings.Join(starts[0].Env, " "), "JDK_JAVA_OPTIONS") {
		t.Errorf("no JVM, error %v, environment %q", err, starts[0].Env)
	}
	b.Images = map[string]string{"back": "x"}
	if _, err := s.Starts(b, s.Targets[1], v); err == nil ||
		!strings.Contains(err.Error(), "has no image") {
		t.Errorf("a process without an image: error %v", err)
	}
}

// Variables in Env can differ between the processes of a system.
func TestWordsOfEachProcess(t *testing.T) {
	s := &Service{Name: "shop", Run: Run{Processes: []Process{
		{Name: "back", Command: []string{"x"}}, {Name: "front", Command: []string{"x"}}}},
		Targets: []Target{{Name: "only"}}}
	v := Values{Ports: []int{1, 2}, MetricsPorts: []int{3, 4}, CPUs: 1, MemoryBytes: 1 << 30,
		Append: map[string]string{"X": "{part} {service} {metricsPort}"}}
	check := func(want ...string) {
		t.Helper()
		starts, err := s.Starts(&Built{}, s.Targets[0], v)
		if err != nil || len(starts) != len(want) {
			t.Fatalf("%d starts, error %v", len(starts), err)
		}
		for i, w := range want {
			if !slices.Contains(starts[i].Env, "X="+w) {
				t.Errorf("environment %q, want X=%s", starts[i].Env, w)
			}
		}
	}
	check("back back 3", "front front 4")
	s.Run, v.Ports = Run{Command: []string{"x"}}, v.Ports[:1]
	check("shop " + s.Full(s.Targets[0]) + " 3")
}
