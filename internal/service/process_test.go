package service

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func readSystem(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("testdata/java-system.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func goodSystem(t *testing.T) []*Service {
	t.Helper()
	services, err := Catalog(root(t, map[string]string{"java-system": readSystem(t)}))
	if err != nil {
		t.Fatal(err)
	}
	return services
}

// Each build of a service becomes a service with its own targets and needs. Names stay those of the
// manifest.
func TestBuildsOfAService(t *testing.T) {
	var got []string
	for _, s := range goodSystem(t) {
		line := fmt.Sprintf("%s %s", s.Label(), s.Build.Artifact)
		for _, n := range s.Needs {
			line += " " + n.Tool
		}
		for _, target := range s.Targets {
			line += " " + s.Full(target)
		}
		got = append(got, line)
	}
	want := "java-system app java java-system/plain java-system/postgres\n" +
		"java-system (native) app-native java native-image java-system/native"
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// The 700 MiB of plain are in 0.5 + 1 parts: 233 and 466; of postgres in 2 + 0.5 + 1: 400, 100 and
// 200. Heaps are three quarters, rounded down.
func TestSystemStarts(t *testing.T) {
	s := goodSystem(t)[0]
	t.Setenv("PATH", "p")
	for _, name := range passedOn[1:] {
		t.Setenv(name, "x")
	}
	b := &Built{Dir: "/b", Tools: map[string]Tool{
		"java": {Path: "/jdk/java"}, "postgres": {Path: "/pg/postgres"}}}
	check := func(target int, ports []int, want ...string) {
		t.Helper()
		starts, err := s.Starts(b, s.Targets[target],
			Values{Host: "h", Ports: ports, CPUs: 2, MemoryBytes: 700 << 20})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, start := range starts {
			text := strings.Join(start.Env, " ")
			for _, name := range passedOn[1:] {
				text = strings.Replace(text, name+"=x ", "", 1)
			}
			got = append(got, fmt.Sprintf("%s: %s | %s| %s", start.Name,
				strings.Join(start.Args, " "), strings.TrimSuffix(text, "TMPDIR=x"), start.Ready))
		}
		if a, b := strings.Join(got, "\n"), strings.Join(want, "\n"); a != b {
			t.Errorf("got\n%s\nwant\n%s", a, b)
		}
	}
	const java = "/jdk/java -Xms64m -Xmx%dm -XX:+UseG1GC -XX:+AlwaysPreTouch " +
		"-XX:ActiveProcessorCount=2 -XX:+ExitOnOutOfMemoryError -jar back.jar"
	check(0, []int{1001, 1002},
		"back: "+fmt.Sprintf(java, 174)+" | ALL=yes CPUS=2 DATABASE=h:1002 HOST=h "+
			"MEMORY_MIB=233 PATH=p PORT=1001 WHO=back| /up",
		"front: /jdk/java -jar front.jar --back=1001 | ALL=yes CPUS=2 HOST=h MEMORY_MIB=466 "+
			"PATH=p PORT=1002 WHO=nobody| /ready")
	check(1, []int{1001, 1002, 1003},
		"database: /pg/postgres -p 1001 | ALL=yes CPUS=2 DATABASE=1001 HOST=h MEMORY_MIB=400 "+
			"PATH=p PORT=1001 WHO=nobody| ",
		"back: "+fmt.Sprintf(java, 75)+" | ALL=yes CPUS=2 DATABASE=1001 HOST=h "+
			"MEMORY_MIB=100 PATH=p PORT=1002 WHO=back| /up",
		"front: /jdk/java -jar front.jar --back=1002 | ALL=yes CPUS=2 DATABASE=1001 HOST=h "+
			"MEMORY_MIB=200 PATH=p PORT=1003 WHO=nobody| /ready")
	_, err := s.Starts(b, s.Targets[0], Values{Host: "h", Ports: []int{1}, CPUs: 1,
		MemoryBytes: 1 << 30})
	if err == nil || !strings.Contains(err.Error(), "1 ports for 2 processes") {
		t.Errorf("error %v", err)
	}
}

func TestBrokenSystems(t *testing.T) {
	check := func(old, new, want string) {
		t.Helper()
		good := readSystem(t)
		if strings.Count(good, old) != 1 {
			t.Fatalf("%q is not once in the good manifest", old)
		}
		_, err := Catalog(root(t, map[string]string{
			"java-system": strings.Replace(good, old, new, 1)}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", new, err, want)
		}
	}
	check("  processes:\n", "  command: [x]\n  processes:\n",
		"in a system, each process has its own command")
	check("- name: back", "- name: front", `process "front" is listed twice`)
	check("- name: back", "- name: Back", `process "Back" is not a valid name`)
	check("- name: back", "- name: other", "{back.port} has no value here")
	check("{back.port}", "{back.prt}", "{back.prt} has no value here")
	check(`["{java}", "{jvm}", -jar, back.jar]`, "[]", "the process has no command")
	check("ready: /up", "ready: up", `ready "up" is not a URL path`)
	check("share: 0.5", "share: -1", "share -1 is negative")
	check("targets: [postgres]", "targets: [postgre]", `the service has no target "postgre"`)
	check("    - name: front\n", "    - name: front\n      targets: [plain]\n",
		"the last process receives the requests of every target, so it cannot have targets")
	check("      ready: /ready\n", "      ready: /other\n",
		"the last process must use the path of run.ready")
	check("needs: [{tool: postgres, version: \"15\"}]", "args: [x]",
		"in a system, each process has its own command")
	check("needs: [{tool: postgres, version: \"15\"}]", "about: x", "unknown key")
	check("needs: [{tool: postgres, version: \"15\"}]", "needs: [{tool: postgrez}]",
		`unknown tool "postgrez"`)
	check("build: native", "build: nativ", `the service has no build "nativ"`)
	check("  - name: native\n", "  - name: other\n", `no target uses build "other"`)
	check("artifact: app-native", "artifact: ../app", `artifact "../app" is outside the folder`)
	check("[[native-image, -jar", "[[cargo, -jar", "the step runs cargo")
	check("artifact: app-native\n", "artifact: app-native\n    command: [x]\n",
		"in a system, each process has its own command")
	check(`{WHO: nobody, ALL: "yes"}`, `{WHO: "{jvm}"}`, "{jvm} has no value here")
	check(`"{jvm}", -jar, back.jar`, `"-D={jvm}", -jar, back.jar`,
		"{jvm} is an argument of its own")
	check(`ALL: "yes"`, `ALL: "{database.port}"`,
		"back needs {database.port}, and target plain has no database")
}

// Env overrides all other variables, for its processes.
func TestEnvironmentThatRidesAlong(t *testing.T) {
	s := goodSystem(t)[0]
	b := &Built{Tools: map[string]Tool{"java": {Path: "/java"}}}
	check := func(on []string, want string) {
		t.Helper()
		starts, err := s.Starts(b, s.Targets[0], Values{Host: "h", Ports: []int{1, 2}, CPUs: 1,
			MemoryBytes: 1 << 30, On: on, Env: map[string]string{"WHO": "agent {port}"}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, start := range starts {
			got = append(got, start.Env[len(start.Env)-1])
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("on %v: %s, want %s", on, text, want)
		}
	}
	check(nil, "WHO=agent 1, WHO=agent 2")
	check([]string{"front"}, "WHO=back, WHO=agent 2")
}

// PostgreSQL's server is found in distributions' folders; the newest of several is taken.
func TestPostgres(t *testing.T) {
	m := newMachine(t)
	m.places.servers = []string{m.dir + "/pg/*/bin/postgres"}
	for _, version := range []string{"9", "15", "13"} {
		m.has("pg/"+version+"/bin/postgres", "postgres (PostgreSQL) "+version+".4")
	}
	s := &Service{Needs: []Need{{Tool: "postgres", Version: "15"}}}
	if missing := m.tools().Missing(s); len(missing) != 0 {
		t.Errorf("missing %v", missing)
	}
}

// A target's own needs skip only this target.
func TestNeedsOfATarget(t *testing.T) {
	s := goodSystem(t)[0]
	m := newMachine(t)
	m.jdk("25", "25.0.3")
	tools := m.tools()
	if missing := tools.Missing(s, s.Targets[0]); len(missing) != 0 {
		t.Errorf("plain lacks %v", missing)
	}
	missing := tools.Missing(s, s.Targets[1])
	if want := "needs postgres >= 15: not found (install PostgreSQL 15)"; len(missing) != 1 ||
		missing[0] != want {
		t.Errorf("postgres lacks %v, want %s", missing, want)
	}
}
