package faults

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// The JVM's target starts another program in its place, so the agent sees a JVM.
const javaMain = `public class Main {
  public static void main(String[] args) throws Exception {
    System.exit(new ProcessBuilder(args).inheritIO().start().waitFor());
  }
}
`

// An agent that ends its service (java.lang.instrument, "premain"), or with "wait" never lets it
// begin.
const javaRide = `public class Ride {
  public static void premain(String how) throws Exception {
    if ("wait".equals(how)) {
      System.err.println("ride: asking for a licence");
      Thread.sleep(Long.MAX_VALUE);
    }
    System.err.println("ride: no licence");
    System.exit(3);
  }
}
`

// jvm adds java-one, and an agent for it from the file in the variable RIDE.
func (s *scene) jvm(startup string) {
	s.t.Helper()
	s.furnish("go-two")
	s.put("Main.java", javaMain)
	s.put("Ride.java", javaRide)
	s.put("manifest", "Premain-Class: Ride\n")
	s.put("damaged.jar", strings.Repeat("no jar", 100))
	for _, words := range [][]string{
		{"javac", "--release", "17", "Main.java", "Ride.java"},
		{"jar", "cfm", "ride.jar", "manifest", "Ride.class"},
	} {
		tool := exec.Command(words[0], words[1:]...)
		tool.Dir = s.dir
		if out, err := tool.CombinedOutput(); err != nil {
			s.t.Fatalf("%v: %v: %s", words, err, out)
		}
	}
	file, err := service()
	if err != nil {
		s.t.Fatal(err)
	}
	steps := fmt.Sprintf("[cp, %q, %q, bin]", file, s.path("Main.class"))
	s.put("ROOT/services/java-one/service.yaml", strings.NewReplacer("go-two", "java-one",
		"language: Go", "language: Java", "runtime: native", "runtime: jvm",
		"build:\n", "needs: [{tool: java, version: \"17\"}]\nbuild:\n",
		fmt.Sprintf("[cp, %q, bin/go-two]", file), steps, "artifact: bin/go-two", "artifact: bin",
		`["{dir}/bin/go-two"]`,
		`["{java}", "{jvm}", -cp, "{dir}/bin", Main, "{dir}/bin/go-nethttp"]`+
			"\n  startup: "+startup,
	).Replace(fmt.Sprintf(manifest, file)))
	s.put("ROOT/agents.yaml", `agents:
  - name: ride
    about: It is told what to be.
    runtimes: [jvm]
    fetch: {path: "${RIDE}"}
    env: {JAVA_TOOL_OPTIONS: "-javaagent:{agent}=${HOW}"}
`)
}

// An agent that is not available, or keeps its service from starting, is named with its last
// output, and affects no other trial.
func TestRides(t *testing.T) {
	needs := programFiles
	needs.Facts = append(needs.Facts, testsets.Version("javac", "-version"))
	testsets.Once(t, "an agent that ends its service", needs)
	more := testsets.More(t, needs)
	if _, err := exec.LookPath("javac"); err != nil {
		t.Skip("no JDK here makes an agent")
	}
	for _, row := range []struct {
		ride, how, step string
		says            []string
	}{
		{"none.jar", "end", "build", []string{"none.jar: no such file",
			"set ${RIDE} to the path"}},
		{"/dev/zero", "end", "build", []string{"/dev/zero is not a regular file",
			"set ${RIDE} to the path"}},
		{"damaged.jar", "end", "ready", []string{"agent ride was attached", "Agent_OnLoad"}},
		{"ride.jar", "end", "ready", []string{"(exit status 3)", "agent ride was attached",
			`last line of its log: "ride: no licence"`}},
		{"ride.jar", "wait", "ready", []string{"answers 200: not within 10s; last: ",
			"agent ride was attached", "ride: asking for a licence"}},
	} {
		if !more && row.says[0] != "(exit status 3)" {
			continue
		}
		t.Run(filepath.Base(row.ride)+" "+row.how, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			startup := "2m" // of a JVM beside other tests
			if row.how == "wait" {
				startup = "10s"
			}
			s.jvm(startup)
			p := s.begin("", s.arguments("--root ROOT run --targets java-one,go-two --agent ride "+
				"--blocks 1 --measure 300ms --warmup 300ms --out OUT")...)
			ride := row.ride
			if !filepath.IsAbs(ride) {
				ride = s.path(ride)
			}
			p.cmd.Env = append(p.cmd.Env, "RIDE="+ride, "HOW="+row.how)
			p.bound = 3 * within // a JVM beside other tests, and its startup timeout
			p.run(t)
			e := p.wait(t)
			e.check(t)
			e.refused(t, cli.Invalid)
			s.tidy(p.cmd.Process.Pid)
			_, records, bad, err := record.Read(s.path("OUT"))
			if err != nil || len(bad) > 0 || len(records) != 3 {
				t.Fatalf("%d records, bad %v, error %v", len(records), bad, err)
			}
			for _, r := range records {
				if failed := r.Failure != nil; failed != (r.Target.Variant == "ride") {
					t.Errorf("%s fails by %+v", r.Trial, r.Failure)
				} else if failed && r.Failure.Step != row.step {
					t.Errorf("it fails in step %s, want %s", r.Failure.Step, row.step)
				}
			}
			for _, text := range row.says {
				if !strings.Contains(e.stderr, text) {
					t.Errorf("it does not say %q: %s", text, e.stderr)
				}
			}
		})
	}
}
