package docker

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
)

// stackOf returns a project with this model that has not been brought up.
func stackOf(model string) *stack {
	spec := launch.Spec{Name: "t", Cores: []int{2, 3}, Compose: &launch.Compose{
		File: "app.yaml", Service: "web", Model: []byte(model)}}
	return &stack{Common: launch.NewCommon(spec), name: "prony-1-1", l: &Launcher{
		self: lab{ID: "1", Boot: "2", Namespace: "3"}}}
}

// TestAdaptedModel labels all of a Compose project, and removes what could collide with another
// lab's.
func TestAdaptedModel(t *testing.T) {
	const labels = `{"` + labelLab + `": "1", "` + labelBoot + `": "2", "` + labelNamespace +
		`": "3"`
	p := stackOf(`{"name": "app", "services": {
		"web": {"image": "i", "ports": [80], "container_name": "w", "build": ".",
			"labels": {"mine": "yes"}, "restart": "always"}},
		"networks": {"back": {"name": "app_back"},
			"shared": {"external": true, "name": "shared"}}}`)
	p.pod = &pod{name: "prony-pod-1"}
	want := `{"name": "prony-1-1", "services": {
		"web": {"image": "i", "labels": ` + labels + `, "` + labelGroup + `": "prony-pod-1",
			"mine": "yes"}, "restart": "no", "pull_policy": "never", "cpuset": "2,3",
			"logging": {"driver": "json-file", "options": {"max-size": "8m"}},
			"cgroup_parent": "/prony-pod-1"}},
		"networks": {"back": {"name": "prony-1-1_back", "labels": ` + labels + `,
			"` + labelGroup + `": "prony-pod-1"}}, "shared": {"external": true, "name": "shared"}},
		"volumes": {}}`
	text, err := p.adapted()
	if err != nil {
		t.Fatal(err)
	}
	var got, wanted any
	for text, to := range map[string]*any{string(text): &got, want: &wanted} {
		if err := json.Unmarshal([]byte(text), to); err != nil {
			t.Fatal(err, text)
		}
	}
	if !reflect.DeepEqual(got, wanted) {
		t.Errorf("the model is %s, want %s", text, want)
	}
	_, err = stackOf("services:").adapted()
	if err == nil || !strings.HasPrefix(err.Error(), "read Compose's output for app.yaml: ") {
		t.Errorf("no JSON: %v", err)
	}
}

// TestComposeState checks that a container without a state is an error.
func TestComposeState(t *testing.T) {
	f := startFake(t)
	answers := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
	}
	f.fail("GET /containers/json",
		answers(`[{"Id": "id1", "Labels": {"`+labelService+`": "web"}}]`))
	f.fail("GET /containers/X/json", answers("{}"))
	p := stackOf("{}")
	var err error
	if p.l.engine, err = connect(t.Context(), f.socket); err != nil {
		t.Fatal(err)
	}
	defer p.l.engine.Close()
	err = p.meet(t.Context(), 0)
	if err == nil || !strings.Contains(err.Error(), "the engine reported no state") {
		t.Errorf("error is %v", err)
	}
}

// TestComposeLog checks that the output of containers is kept within bounds, and not written
// through a link.
func TestComposeLog(t *testing.T) {
	dir := t.TempDir()
	program, victim := filepath.Join(dir, "compose"), filepath.Join(dir, "victim")
	const prints = "#!/bin/sh\necho first\nhead -c 67108864 /dev/zero\necho\necho last\n"
	if err := os.WriteFile(program, []byte(prints), 0o755); err != nil {
		t.Fatal(err)
	}
	p := stackOf("{}")
	p.Spec.Compose.Program, p.Spec.LogFile = []string{program}, filepath.Join(dir, "log")
	p.up = true
	for range 2 { // the second replaces the first
		var log []string
		testsets.Allocates(t, 8<<20, func() { log = p.Log(1) })
		info, err := os.Stat(p.Spec.LogFile)
		if err != nil || len(log) != 1 || log[0] != "last" {
			t.Fatalf("the log ends with %.99q, error %v", log, err)
		}
		if info.Size() > launch.LogHead+launch.LogTail+2<<20 {
			t.Errorf("the log has %d bytes", info.Size())
		}
	}
	if got := p.LogDropped(); got < 40<<20 {
		t.Errorf("%d bytes are reported as dropped", got)
	}
	p.Spec.LogFile = filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(victim, nil, 0o600),
		os.Symlink(victim, p.Spec.LogFile)); err != nil {
		t.Fatal(err)
	}
	if log := p.Log(1); len(log) != 1 || !strings.Contains(log[0], "open its log") {
		t.Errorf("through a link: %q", log)
	}
	if b, err := os.ReadFile(victim); err != nil || len(b) > 0 {
		t.Errorf("the victim has %d bytes, error %v", len(b), err)
	}
}

// TestComposeGroup checks that containers with the group's name as label exist before the group,
// so that a later lab finds it.
func TestComposeGroup(t *testing.T) {
	dir := t.TempDir()
	program, group := filepath.Join(dir, "compose"), filepath.Join(dir, "group")
	calls := filepath.Join(dir, "calls")
	script := fmt.Sprintf("#!/bin/sh\necho $7 $8 $(ls -d %s 2>&1 | grep -c ^/) >>%s\n"+
		"test $8 = --no-start\n", group, calls)
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	p := stackOf(`{"services": {"web": {"image": "i"}}}`)
	p.Spec.Compose.Program = []string{program}
	p.pod = &pod{name: "prony-pod-1", groups: []launch.Group{{Dir: group, Controller: "freezer",
		Version: 1}}}
	if err := p.run(t.Context()); err == nil {
		t.Error("a failed up is no error")
	}
	got, err := os.ReadFile(calls)
	if err != nil || string(got) != "up --no-start 0\nup --detach 1\n" {
		t.Errorf("it ran %q, error %v", got, err)
	}
}

// TestPlace finds the address of a Compose service, in one of its networks or in that of the host.
func TestPlace(t *testing.T) {
	check := func(mode string, want string, byNetwork map[string]string) {
		t.Helper()
		p := stackOf("{}")
		front := container.InspectResponse{State: &container.State{Pid: 1 << 30},
			HostConfig:      &container.HostConfig{NetworkMode: container.NetworkMode(mode)},
			NetworkSettings: &container.NetworkSettings{}}
		for name, ip := range byNetwork {
			if front.NetworkSettings.Networks == nil {
				front.NetworkSettings.Networks = map[string]*network.EndpointSettings{}
			}
			front.NetworkSettings.Networks[name] = &network.EndpointSettings{
				IPAddress: netip.MustParseAddr(ip)}
		}
		p.all = []container.InspectResponse{front}
		err := p.place()
		if got := p.ip.String(); got != want || (err == nil) != p.ip.IsValid() {
			t.Errorf("%s, %v: address %s, error %v, want %s", mode, byNetwork, got, err, want)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "service web has no address") {
			t.Errorf("%s, %v: %v", mode, byNetwork, err)
		}
	}
	check("host", "127.0.0.1", nil)
	check("bridge", "172.18.0.2", map[string]string{"back": "172.18.0.2"})
	check("bridge", "invalid IP", map[string]string{"six": "fd00::2"})
	check("none", "invalid IP", nil)
}

// TestProcessesOfContainers finds all processes of a Compose file's containers, not only the first
// of each, and refuses numbers of other processes.
func TestProcessesOfContainers(t *testing.T) {
	const all = "/" // is in the path of each process's control group
	containers := func(ids ...string) *stack {
		p := stackOf("{}")
		p.l.version = 1
		if len(cgroup.Groups(cgroup.OwnMounts(), cgroup.Paths("0::/\n"), 2)) > 0 {
			p.l.version = 2
		}
		for _, id := range ids {
			p.all = append(p.all, container.InspectResponse{ID: id, Name: "/web",
				State: &container.State{Pid: os.Getpid()}})
		}
		return p
	}
	p := containers(all)
	if err := p.recognise(); err != nil {
		t.Fatal(err)
	}
	if len(p.groups) == 0 {
		t.Skip("no control groups are mounted")
	}
	if pids := p.PIDs(); !slices.Contains(pids, os.Getpid()) ||
		!slices.Contains(pids, os.Getppid()) {
		t.Errorf("processes %v lack %d or %d", pids, os.Getpid(), os.Getppid())
	}
	if !slices.Equal(p.Groups(), p.groups) {
		t.Errorf("groups %v of a single container, want %v", p.Groups(), p.groups)
	}
	p.dirs = []string{""} // of an engine whose groups are not mounted here
	if pids := p.PIDs(); !slices.Equal(pids, []int{os.Getpid()}) {
		t.Errorf("without groups: %v", pids)
	}
	if p = containers(all, all); p.recognise() != nil || p.Groups() != nil {
		t.Errorf("groups %v of two containers", p.Groups())
	}
	err := containers(all, "0123abcd").recognise()
	if err == nil || !strings.Contains(err.Error(), "container web: it is not visible") {
		t.Errorf("another process's number: %v", err)
	}
}

// TestContainerOutOfMemory says that the limit on memory ended a container, unless the lab was
// ending it.
func TestContainerOutOfMemory(t *testing.T) {
	f := startFake(t)
	f.fail("POST /containers/X/wait", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "{\"StatusCode\": 137}")
	})
	check := func(killed, stopping bool, want string) {
		t.Helper()
		f.fail("GET /containers/X/json", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "{\"State\": {\"OOMKilled\": %t}}", killed)
		})
		p := stackOf("{}")
		p.l.engine = newAPI(f.socket)
		p.l.engine.version = "/v" + f.api
		defer p.l.engine.Close()
		p.Stopping.Store(stopping)
		p.heed(container.InspectResponse{ID: "id1", Config: &container.Config{
			Labels: map[string]string{labelService: "db"}}})
		if p.Exit() != want {
			t.Errorf("out of memory %t, stopping %t: %q, want %q", killed, stopping, p.Exit(), want)
		}
	}
	check(false, false, "service db: signal: killed")
	check(true, false, "service db: killed by the kernel: out of memory")
	check(true, true, "service db: signal: killed; the kernel had killed a process of this "+
		"target: out of memory")
}

// TestComposeOutlivesThreads starts Compose from a thread that nothing ends before Compose ends:
// the kernel would kill Compose with it.
func TestComposeOutlivesThreads(t *testing.T) {
	testsets.Live(t)
	program := filepath.Join(t.TempDir(), "compose")
	const slow = "#!/bin/sh\nread first\necho \"$first\"\nsleep 0.2\n"
	if err := os.WriteFile(program, []byte(slow), 0o755); err != nil {
		t.Fatal(err)
	}
	p := stackOf("{}")
	p.Spec.Compose.Program, p.model = []string{program}, []byte("begun\n")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(p.compose(t.Context(), write, "up"), write.Close()) }()
	if _, err := bufio.NewReader(read).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	for range 64 { // ends the threads that wait for work
		go runtime.LockOSThread()
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
