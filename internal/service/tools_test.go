package service

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"prony.example/internal/base/files"
	"prony.example/internal/dev/testsets"
)

func TestVersionsAreFound(t *testing.T) {
	check := func(output, want string) {
		if got := versionIn(output); got != want {
			t.Errorf("%q: got %q, want %q", output, got, want)
		}
	}
	check("go version go1.26.8 linux/amd64\n", "1.26.8")
	check("go version devel go1.27-e9a1b2c Mon Jan 5 linux/amd64\n", "1.27")
	check("openjdk version \"17.0.15\" 2025-04-15\nOpenJDK Runtime Environment\n", "17.0.15")
	check("openjdk version \"25\" 2025-09-16\n", "25")
	check("java version \"1.8.0_402\"\n", "1.8.0")
	check("\x1b[1mApache Maven 3.8.7\x1b[m\nMaven home: /usr/share/maven\n", "3.8.7")
	check("v20.20.2\n", "20.20.2")
	check("11.19.1\n", "11.19.1")
	check("Python 3.11.7\n", "3.11.7")
	check("cargo 1.95.0 (f2d3ce0bd 2026-03-21)\n", "1.95.0")
	check("native-image 25.0.3 2026-04-21\nGraalVM Runtime Environment\n", "25.0.3")
	check("no such thing\n", "")
}

// A report names the edition of native-image, and whether it is a vendor's distribution, which has
// the JDK's libraries for static linking. Its command is a link.
func TestEditions(t *testing.T) {
	check := func(want, says string, static bool) {
		t.Helper()
		home := t.TempDir()
		program := filepath.Join(home, "lib/svm/bin/native-image")
		folders := []string{filepath.Dir(program), filepath.Join(home, "bin")}
		if static {
			folders = append(folders, filepath.Join(home, "lib/static/linux-amd64"))
		}
		for _, folder := range folders {
			if err := os.MkdirAll(folder, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		link := filepath.Join(home, "bin/native-image")
		if err := errors.Join(os.WriteFile(program, nil, 0o600),
			os.Symlink("../lib/svm/bin/native-image", link)); err != nil {
			t.Fatal(err)
		}
		tools := &Tools{ctx: t.Context(), byTool: map[string][]*candidate{}}
		tools.run = func(context.Context, []string, string, ...string) (string, error) {
			return says, nil
		}
		tools.byTool["native-image"] = []*candidate{tools.candidate("native-image", link, nil)}
		tool, err := tools.resolve(Need{Tool: "native-image"})
		if err != nil || tool.String() != want {
			t.Errorf("got %q, error %v, want %q", tool, err, want)
		}
	}
	const community = "native-image 25.0.2 2026-01-20\nGraalVM Runtime Environment GraalVM CE " +
		"25.0.2+10.1 (build 25.0.2+10-jvmci-b01)"
	check("25.0.2 (GraalVM CE)", community, true)
	check("25.0.2 (assembled GraalVM CE with shared JDK libraries)", community, false)
	check("25.0.3 (Mandrel)", "native-image 25.0.3 2026-04-21\nMandrel-25.0.3.0-Final", true)
	check("25", "native-image 25", false)
}

func TestVersionsCompare(t *testing.T) {
	check := func(a, b string, want int) {
		if got := compareVersions(a, b); got != want {
			t.Errorf("%s against %s: got %d, want %d", a, b, got, want)
		}
		if got := compareVersions(b, a); got != -want {
			t.Errorf("%s against %s: got %d, want %d", b, a, got, -want)
		}
	}
	check("25", "25", 0)
	check("25.0.0", "25", 0)
	check("25.0.3", "25", 1)
	check("25", "25.0.1", -1)
	check("3.9", "3.11", -1) // numbers, not digits: 9 < 11
	check("1.26", "1.26.8", -1)
	check("17.0.15", "25", -1)
	check("1.8.0", "17", -1)
	check("0", "", 0) // no required version: any is accepted
}

// machine is a simulated machine: programs with their output, by path below its folder.
type machine struct {
	t      *testing.T
	dir    string
	says   map[string]string
	places places
	asked  atomic.Int32
}

func newMachine(t *testing.T) *machine {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, dir: dir, says: map[string]string{}}
	m.places = places{jvms: []string{filepath.Join(dir, "jvm/*")},
		look: func(program string) (string, error) {
			path := filepath.Join(dir, "bin", program)
			if !files.IsFile(path) {
				return "", errors.New("not found")
			}
			return path, nil
		}}
	return m
}

func (m *machine) has(path, says string) {
	path = filepath.Join(m.dir, path)
	put(m.t, path, "")
	m.says[path] = says
}

func (m *machine) jdk(name, version string) {
	m.has("jvm/"+name+"/bin/java", `openjdk version "`+version+`"`)
	m.has("jvm/"+name+"/bin/javac", "")
}

func (m *machine) link(from, to string) {
	from = filepath.Join(m.dir, from)
	if err := os.MkdirAll(filepath.Dir(from), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(m.dir, to), from); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) tools() *Tools {
	return findTools(m.t.Context(), m.places, func(_ context.Context, _ []string, program string,
		args ...string) (string, error) {
		m.asked.Add(1)
		says := m.says[program]
		if broken, ok := strings.CutPrefix(says, "broken "); ok {
			return "", errors.New(broken)
		}
		if modules, ok := strings.CutPrefix(says, "bare "); ok && args[0] == "-c" {
			return "", errors.New(modules)
		}
		return says, nil
	})
}

func TestMissing(t *testing.T) {
	check := func(name string, need Need, set func(*machine), want ...string) {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			set(m)
			got := m.tools().Missing(&Service{Needs: []Need{need}})
			for i := range got {
				got[i] = strings.ReplaceAll(got[i], m.dir, "")
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	// A build that is unavailable is missing, whatever tools there are.
	got := newMachine(t).tools().Missing(&Service{Unavailable: "no registry has its library"})
	if want := []string{"cannot be built: no registry has its library"}; !slices.Equal(got, want) {
		t.Errorf("unavailable: got %q, want %q", got, want)
	}
	java25, python := Need{"java", "25"}, Need{"python", "3.11"}

	check("there", Need{"go", "1.26"}, func(m *machine) { m.has("bin/go", "go1.26.8") })
	check("any version", Need{"mvn", ""}, func(m *machine) { m.has("bin/mvn", "Maven 3.8.7") })
	check("older", Need{"go", "1.26"}, func(m *machine) { m.has("bin/go", "go1.25.9") },
		"needs go >= 1.26: found 1.25.9 (install Go 1.26)")
	check("nowhere", Need{"npm", ""}, func(*machine) {}, "needs npm: not found (install npm)")
	check("nowhere, with version", Need{"cargo", "1.85"}, func(*machine) {},
		"needs cargo >= 1.85: not found (install Rust 1.85)")
	check("broken", Need{"mvn", ""}, func(m *machine) { m.has("bin/mvn", "broken exit status 1") },
		"needs mvn: read the version of /bin/mvn: exit status 1 (install Apache Maven)")
	check("dumb", Need{"mvn", ""}, func(m *machine) { m.has("bin/mvn", "hello") },
		`needs mvn: read the version of /bin/mvn: no number in "hello" (install Apache Maven)`)

	check("old JDK", java25, func(m *machine) { m.jdk("17", "17.0.15") },
		"needs java >= 25: found 17.0.15 (set JAVA_HOME or install a JDK 25)")
	check("JDK beside PATH", java25, func(m *machine) {
		m.jdk("17", "17.0.15")
		m.jdk("25", "25.0.3")
		m.link("bin/java", "jvm/17/bin/java")
	})
	check("JDK on PATH alone", java25, func(m *machine) {
		m.has("opt/25/bin/java", "25.0.3")
		m.has("opt/25/bin/javac", "25.0.3")
		m.link("bin/java", "opt/25/bin/java")
	})
	check("only a JRE", java25, func(m *machine) { m.has("jvm/25/bin/java", "25.0.3") },
		"needs java >= 25: /jvm/25 is a JRE without javac: a JDK is required (set JAVA_HOME or "+
			"install a JDK 25)")
	check("a JRE and an old JDK", java25, func(m *machine) {
		m.has("jvm/25/bin/java", "25.0.3")
		m.jdk("17", "17.0.15")
	}, "needs java >= 25: found 17.0.15 (set JAVA_HOME or install a JDK 25)")

	check("whole Python", python, func(m *machine) { m.has("bin/python3", "Python 3.11.7") })
	check("Python by its other name", python, func(m *machine) {
		m.has("bin/python", "Python 3.12.1")
	})
	check("old Python", python, func(m *machine) { m.has("bin/python3", "bare 3.9.2") },
		"needs python >= 3.11: found 3.9.2 (install CPython 3.11)")
	check("bare Python", python, func(m *machine) { m.has("bin/python3", "bare 3.11.7") },
		"needs python with venv and ensurepip: 3.11.7 (install Python's venv package, such as "+
			"python3-venv)")
	check("native-image of a JDK", Need{"native-image", "25"}, func(m *machine) {
		m.jdk("graal", "25.0.3")
		m.has("jvm/graal/bin/native-image", "native-image 25.0.3 2026-04-21")
	})
}

func TestWhichJDK(t *testing.T) {
	check := func(name, javaHome, need, want string) {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			for _, version := range []string{"17.0.15", "25.0.3", "26.0.1"} {
				m.jdk(version, version)
			}
			m.link("jvm/default", "jvm/17.0.15")
			m.link("bin/java", "jvm/default/bin/java")
			if javaHome != "" {
				m.places.javaHome = filepath.Join(m.dir, "jvm", javaHome)
			}
			tools := m.tools()
			got, err := tools.resolve(Need{"java", need})
			if err != nil || got.Version != want ||
				got.Path != filepath.Join(m.dir, "jvm", want, "bin/java") {
				t.Errorf("got %v, %v, want %s", got, err, want)
			}
			tools.Missing(&Service{Needs: []Need{{"java", "11"}, {"java", "99"}}})
			// Three JVMs under five names, each queried once for all needs.
			if n := m.asked.Load(); n != 3 {
				t.Errorf("%d questions, want 3", n)
			}
		})
	}
	check("the newest", "", "25", "26.0.1")
	check("the newest for any", "", "", "26.0.1")
	check("the chosen one, which is older", "25.0.3", "25", "25.0.3")
	check("not the chosen one, which is too old", "17.0.15", "25", "26.0.1")
	check("a chosen one that is not there", "21", "25", "26.0.1")
}

func TestVersions(t *testing.T) {
	m := newMachine(t)
	m.has("bin/go", "go1.26.8")
	m.has("bin/npm", "broken exit status 1")
	m.has("bin/python3", "bare 3.11.7") // cannot run services
	m.jdk("25", "25.0.3")
	tools := m.tools()
	if m.asked.Load() != 0 {
		t.Error("a tool was asked before anybody wanted to know")
	}
	got := tools.Versions()
	if len(got) != 2 || got["go"] != "1.26.8" || got["java"] != "25.0.3" {
		t.Errorf("got %v", got)
	}
}

func TestRealGoIsFound(t *testing.T) {
	tools := FindTools(t.Context())
	if missing := tools.Missing(&Service{Needs: []Need{{"go", "1.26"}}}); len(missing) > 0 {
		t.Errorf("the Go that runs this test: %v", missing)
	}
}

func TestQuestionsEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := askTool(ctx, os.Environ(), "sleep", "60"); err == nil {
		t.Error("a question outlived its context")
	}
	_, err := askTool(t.Context(), os.Environ(), "sh", "-c", "echo one; echo two >&2; exit 3")
	if err == nil || err.Error() != "exit status 3: two" {
		t.Errorf("got %v", err)
	}
}

// A tool that a busy machine delays by more than 10 s has a version.
func TestSlowToolsAnswer(t *testing.T) {
	testsets.Once(t, "a tool that is slow to print its version", testsets.Needs{})
	out, err := askTool(t.Context(), os.Environ(), "sh", "-c", "sleep 12; echo Apache Maven 3.9.16")
	if err != nil || versionIn(out) != "3.9.16" {
		t.Errorf("got %q, %v", out, err)
	}
}

// A tool outside of the catalog is queried with the user's command.
func TestWants(t *testing.T) {
	tools := FindTools(t.Context())
	check := func(want string, tool string, ask ...string) {
		t.Helper()
		got := tools.Missing(&Service{Wants: []Want{{Tool: tool, Ask: ask}}})
		if want == "" && len(got) == 0 {
			return
		}
		if want == "" || len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%s by %q: it says %q, want %q", tool, ask, got, want)
		}
	}
	check("needs no-such-tool: not found", "no-such-tool", "no-such-tool", "--version")
	check(`no number in "none" (set version to a command that prints it)`, "sh", "echo", "none")
	check(`reading its version with "false" failed`, "sh", "false")
	check("", "sh", "echo", "shell 1.2")
	made := &Service{Made: &Built{}, Wants: []Want{{Tool: "sh", Ask: []string{"sh"}}}}
	built, err := (&Builder{Tools: tools}).Build(t.Context(), made)
	if err != nil || built.Versions()["sh"] != "1.2" {
		t.Errorf("versions %v, %v", built.Versions(), err)
	}
}
