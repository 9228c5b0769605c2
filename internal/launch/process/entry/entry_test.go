package entry_test

import (
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/launch/process/entry"
)

func TestParse(t *testing.T) {
	check := func(e entry.Entry) {
		t.Helper()
		got, err := entry.Parse(e.String())
		if err != nil || !reflect.DeepEqual(got, e) {
			t.Errorf("%+v, %v: want %+v", got, err, e)
		}
	}
	check(entry.Entry{})
	check(entry.Entry{Parent: 7, Groups: []string{"/a:1", ""}, Cores: []int{0, 63, 64},
		Data: 1 << 40, User: 7, Group: 8, Others: []int{9, 10},
		Path: "/bin/x", Args: []string{"x", "3:abc", "line\nline", ""},
		Env: []string{"A=ü", "B="}})
}

// A truncated entry is an error and never another entry.
func TestParseCut(t *testing.T) {
	whole := entry.Entry{Parent: 7, Path: "/bin/x", Args: []string{"x"},
		Env: []string{"A=1"}}.String()
	for n := range len(whole) {
		if e, err := entry.Parse(whole[:n]); err == nil {
			t.Errorf("%q is %+v", whole[:n], e)
		}
	}
	for _, text := range []string{"-1:", "x:", "1:x", "9999999999999999999:1"} {
		if e, err := entry.Parse(text); err == nil {
			t.Errorf("%q is %+v", text, e)
		}
	}
}

// enter runs this test binary again with an entry.
func enter(t *testing.T, e entry.Entry) (report, errors string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := exec.Command(os.Args[0], "-test.run=^$")
	e.User = os.Geteuid()
	order, err := os.CreateTemp(t.TempDir(), "")
	if err == nil {
		defer order.Close()
		_, err = order.WriteString(e.String())
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Env = []string{entry.Variable + "=1", "GODEBUG=inittrace=1"}
	c.ExtraFiles = []*os.File{w, order}
	var said strings.Builder
	c.Stderr = &said
	_ = c.Run() // the report says how it ended
	w.Close()
	b := make([]byte, 1000)
	n, _ := r.Read(b)
	return string(b[:n]), said.String()
}

// In the runtime's trace of initialisations, no package with imports of its own comes before this
// one.
func TestEntersFirst(t *testing.T) {
	report, traced := enter(t, entry.Entry{Parent: os.Getpid(), Path: "/nowhere"})
	if report == "" || !strings.Contains(report, "error: execute /nowhere: no such file") {
		t.Errorf("it says %q", report)
	}
	for line := range strings.Lines(traced) {
		name := strings.Fields(line)[1]
		if slices.Contains([]string{"fmt", "os", "reflect", "regexp", "time"}, name) {
			t.Errorf("%s is initialised before", name)
		}
	}
	if !strings.Contains(traced, "init runtime ") {
		t.Errorf("the runtime traces nothing: %q", traced)
	}
}

func TestErrors(t *testing.T) {
	here := os.Getpid()
	for want, e := range map[string]entry.Entry{
		"the lab has gone":                    {Parent: 1},
		"join cgroup /nowhere: no such file":  {Parent: here, Groups: []string{"/nowhere"}},
		"set affinity: there is no core 1024": {Parent: here, Cores: []int{1024}},
		"set affinity: invalid argument":      {Parent: here, Cores: []int{1023}},
		"execute /dev/null: permission denied": {Parent: here, Cores: []int{0},
			Path: "/dev/null"},
		"execute /dev/null/x: not a directory\n": {Parent: here, Data: 1 << 40,
			Path: "/dev/null/x"},
	} {
		if report, _ := enter(t, e); !strings.Contains(report, "error: "+want) {
			t.Errorf("it says %q, want %q", report, want)
		}
	}
}
