package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch"
	"prony.example/internal/observe/probe"
)

// start launches a spec, and fills in the fields that every spec has.
func start(t testing.TB, l *Launcher, s launch.Spec) *proc {
	t.Helper()
	p, err := l.Launch(context.Background(), filled(t, s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(0); err != nil {
			t.Error(err)
		}
	})
	return p.(*proc)
}

func filled(t testing.TB, s launch.Spec) launch.Spec {
	t.Helper()
	s.Name = "t"
	if s.Image == "" {
		s.Image = plainImage(t)
	}
	if s.LogFile == "" {
		s.LogFile = filepath.Join(t.TempDir(), "log")
	}
	return s
}

func says(t testing.TB, p *proc, line string) {
	t.Helper()
	testsets.Eventually(t, fmt.Sprintf("%q in its log", line), func() bool {
		return slices.Contains(p.Log(99), line)
	})
}

// left lists the containers and networks with labels that of accepts.
func left(t testing.TB, of func(labels map[string]string) bool) (names []string) {
	t.Helper()
	labels := fmt.Sprintf("{{.Label %q}} {{.Label %q}} {{.Label %q}} ", labelLab, labelBoot,
		labelNamespace)
	for _, list := range [][]string{{"ps", "--all", "--format", labels + "{{.Names}}"},
		{"network", "ls", "--format", labels + "{{.Name}}"}} {
		out, err := docker(nil, append(list, "--filter", "label="+labelLab)...)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			f := strings.Split(strings.TrimSuffix(line, "\n"), " ")
			if of(map[string]string{labelLab: f[0], labelBoot: f[1], labelNamespace: f[2]}) {
				names = append(names, strings.Fields(f[3])...) // one that ends may have none
			}
		}
	}
	return names
}

// inspected returns the engine's description of an object.
func inspected[T any](t testing.TB, kind, id string) T {
	t.Helper()
	out, err := docker(nil, kind, "inspect", id)
	var got []T
	if err = errors.Join(err, json.Unmarshal(out, &got)); err != nil || len(got) != 1 {
		t.Fatalf("inspect %s %s: %v: %s", kind, id, err, out)
	}
	return got[0]
}

// TestIsConfined checks the rights that a container detects itself.
func TestIsConfined(t *testing.T) {
	l := launcher(t, Options{})
	ref := imageOf(t, "confined", map[string]any{
		"Volumes":     map[string]any{"/data": map[string]any{}},
		"Healthcheck": map[string]any{"Test": []string{"CMD", "/act", "act-prints"}}})
	defer removeImage(ref)
	open, closed, other := t.TempDir(), t.TempDir(), t.TempDir()
	for _, dir := range []string{open, closed, other, filepath.Dir(open)} {
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	p := start(t, l, launch.Spec{
		Image: ref, Args: []string{"/act", "act-tells", "/open", "/tmp", open, closed, "/dumps"},
		Mounts: []launch.Mount{{Path: open, Write: true}, {Path: closed},
			{Path: other, Destination: "/dumps", Write: true}},
	})
	says(t, p, "done")
	const none = "0000000000000000"
	want := []string{
		"Uid: 1001 1001 1001 1001", "CapBnd: " + none, "NoNewPrivs: 1", "write /open false",
		"write /tmp true", "write " + open + " true", "write " + closed + " false",
		"write /dumps true", "tmp MiB 256", "run from /tmp true", "done",
	}
	if got := p.Log(99); !slices.Equal(got, want) {
		t.Errorf("it says %q, want %q", got, want)
	}
	for _, dir := range []string{open, other} {
		if _, err := os.Stat(filepath.Join(dir, "written")); err != nil {
			t.Error(err)
		}
	}
	c := inspected[container.InspectResponse](t, "container", p.id)
	if c.State.Health != nil && c.State.Health.Status != container.NoHealthcheck {
		t.Errorf("its health is checked: %+v", c.State.Health)
	}
	if h := c.HostConfig; h.LogConfig.Type != "none" || *h.PidsLimit != pidsLimit || *h.Init {
		t.Errorf("log %q, processes %d, init %t", h.LogConfig.Type, *h.PidsLimit, *h.Init)
	}
	if len(c.Mounts) != 4 {
		t.Fatalf("mounts are %+v, want the volume and the folders", c.Mounts)
	}
	if err := p.Stop(0); err != nil {
		t.Fatal(err)
	}
	volumes, err := docker(nil, "volume", "ls", "--quiet")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range c.Mounts {
		if m.Name != "" && strings.Contains(string(volumes), m.Name) {
			t.Errorf("its volume %s is left", m.Name)
		}
	}
}

// Samples of a container contain processor time, throttling by the quota, and memory.
func TestIsSampled(t *testing.T) {
	p := start(t, launcher(t, Options{}), launch.Spec{Args: []string{"/act", "act-burns"},
		Cores: []int{0}, CPUs: 0.05, MemoryBytes: 64 << 20})
	says(t, p, "ready")
	var groups []probe.Group
	for _, g := range p.Groups() {
		groups = append(groups, probe.Group(g))
	}
	s, err := probe.Start(probe.Config{Period: 10 * time.Millisecond},
		probe.Subject{PIDs: p.PIDs, Groups: groups})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	before := s.Mark()
	testsets.Eventually(t, "throttling", func() bool {
		now := s.Mark()
		return now.CPUNs > before.CPUNs && now.ThrottledNs > before.ThrottledNs &&
			before.ThrottledNs >= 0 && now.ChargedBytes > 0 && now.Processes == 1 &&
			strings.HasPrefix(now.Source, "cgroup v")
	})
}

func TestUserAndSignal(t *testing.T) {
	l := launcher(t, Options{})
	ref := imageOf(t, "user", map[string]any{"User": "service", "StopSignal": "SIGINT",
		"Entrypoint": []string{"/act"}})
	defer removeImage(ref)
	p := start(t, l, launch.Spec{Image: ref, Args: []string{"act-forever"}})
	says(t, p, "ready")
	if err := p.Stop(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	if got := p.Log(1); !slices.Equal(got, []string{"heard interrupt"}) {
		t.Errorf("it %q, want it interrupted", got)
	}
	if u := p.user; u != "service" {
		t.Errorf("it ran as %q", u)
	}
	// Only the image's own list of users makes this name root.
	ref = imageOf(t, "toor", map[string]any{"User": "toor"})
	defer removeImage(ref)
	_, err := l.Launch(t.Context(), filled(t, launch.Spec{Image: ref,
		Args: []string{"/act", "act-forever"}}))
	if err == nil || !strings.Contains(err.Error(), `runs as root: user "toor" in its image`) {
		t.Errorf("error is %v, want one that refuses root", err)
	}
	if names := left(t, l.self.owns); len(names) > 1 {
		t.Errorf("%q are left, want the network alone", names)
	}
}

// A container reaches a server on the host, and no port is published.
func TestNetwork(t *testing.T) {
	for _, o := range []Options{{}, {Host: true}} {
		l := launcher(t, o)
		heard, err := net.Listen("tcp", net.JoinHostPort(l.Gateway().String(), "0"))
		if err != nil {
			t.Fatal(err)
		}
		defer heard.Close()
		go func() {
			for {
				c, err := heard.Accept()
				if err != nil {
					return
				}
				_, _ = c.Write([]byte("hello")) // the log shows whether it arrived
				c.Close()
			}
		}()
		p := start(t, l, launch.Spec{Args: []string{"/act", "act-dials"},
			Env: []string{"PEER=" + heard.Addr().String()}})
		says(t, p, "heard hello")
		if o.Host {
			continue
		}
		got := inspected[network.Inspect](t, "network", l.network)
		if !got.Internal || got.Driver != "bridge" {
			t.Errorf("network is %+v, want an internal bridge", got)
		}
		c := inspected[container.InspectResponse](t, "container", p.id)
		if bound := c.NetworkSettings.Ports; len(bound) > 0 {
			t.Errorf("ports %v are published", bound)
		}
	}
}

func TestPortTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, launcher(t, Options{Host: true}), launch.Spec{
		Args: []string{"/act", "act-listens"}, Env: []string{"HOST=127.0.0.1", "PORT=" + port}})
	<-p.Exited()
	log := strings.Join(p.Log(9), " ")
	if p.Exit() != "exit status 1" || !strings.Contains(log, "address already in use") {
		t.Errorf("the process ended with %q and printed %q", p.Exit(), log)
	}
}

func TestImageMissing(t *testing.T) {
	l := launcher(t, Options{})
	for _, row := range []struct{ image, want string }{
		{"prony/no-such:image",
			"launch t: image prony/no-such:image is missing; run prony build"},
		{"Not A Name", "launch t: inspect image Not A Name: "},
	} {
		_, err := l.Launch(t.Context(), filled(t, launch.Spec{Image: row.image}))
		if err == nil || !strings.HasPrefix(err.Error(), row.want) {
			t.Errorf("error is %v, want %q", err, row.want)
		}
	}
	s := filled(t, launch.Spec{})
	s.Image = ""
	_, err := l.Launch(t.Context(), s)
	if err == nil || !strings.Contains(err.Error(), "no image") {
		t.Errorf("error is %v, want one that misses the image", err)
	}
}

// A foreign container with the same name is neither used nor removed.
func TestNameTaken(t *testing.T) {
	l := launcher(t, Options{})
	name := fmt.Sprintf("prony-%s-%d", processOf(l.self.ID), count.Load()+1)
	out, err := docker(nil, "create", "--name", name, plainImage(t), "/act")
	if err != nil {
		t.Fatal(err)
	}
	other := strings.TrimSpace(string(out))
	_, err = l.Launch(t.Context(), filled(t, launch.Spec{Args: []string{"/act", "act-forever"}}))
	if err == nil || !regexp.MustCompile(`create container `+name+`: .*already in use.*; a `+
		`container of another run has this name`).MatchString(err.Error()) {
		t.Errorf("error is %v, want one that names the container", err)
	}
	if _, err := docker(nil, "container", "inspect", other); err != nil {
		t.Errorf("the other container: %v", err)
	}
	if err := removeContainer(t.Context(), l.engine, other); err != nil {
		t.Error(err)
	}
}

// A launch that is cancelled while the engine works leaves nothing.
func TestCancelledLaunch(t *testing.T) {
	l := launcher(t, Options{})
	for _, row := range []struct {
		what string
		when func() bool
	}{
		{"before it began", func() bool { return true }},
		{"once the container is there", func() bool {
			var found []container.Summary // a command might find it too late
			err := l.engine.get(t.Context(), "/containers/json",
				labelled(labelLab+"="+l.self.ID), &found)
			return err != nil || len(found) > 0
		}},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for !row.when() {
			}
			cancel()
		}()
		p, err := l.Launch(ctx, filled(t, launch.Spec{Args: []string{"/act", "act-deaf"}}))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error is %v, process %v, want it cancelled", row.what, err, p)
		}
		if names := left(t, l.self.owns); len(names) != 1 {
			t.Errorf("%s: %q are left, want the network alone", row.what, names)
		}
		cancel()
	}
	n := 0
	l.live.Range(func(any, any) bool { n++; return true })
	if n != 0 {
		t.Errorf("the launcher thinks that %d run", n)
	}
}

// Close also stops running containers.
func TestClose(t *testing.T) {
	l := launcher(t, Options{})
	p := start(t, l, launch.Spec{Args: []string{"/act", "act-deaf"}})
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if names := left(t, l.self.owns); len(names) > 0 || p.Exit() != "signal: killed" {
		t.Errorf("%q are left; the container ended with %q", names, p.Exit())
	}
	if !l.guard.Over() {
		t.Error("the guard is still there")
	}
}

// The start time lies between the call and the first output of the program, or shortly after that.
func TestBegan(t *testing.T) {
	l := launcher(t, Options{Host: true})
	before := clock.Mono()
	p := start(t, l, launch.Spec{Args: []string{"/act", "act-forever"}})
	if b := p.Began(); b <= before || b > clock.Mono() {
		t.Errorf("began at %d, not between %d and now", b, before)
	}
	check := func(at string, want func(got, now int64) bool) {
		t.Helper()
		if now := clock.Mono(); !want(beganAt(at, before), now) {
			t.Errorf("%q is at %d; before is %d, now %d", at, beganAt(at, before), before, now)
		}
	}
	ago := func(d time.Duration) string { return clock.Wall().Add(-d).Format(time.RFC3339Nano) }
	check("", func(got, now int64) bool { return got >= now })
	check(ago(-time.Hour), func(got, now int64) bool { return got >= now }) // set back
	check(ago(time.Hour), func(got, _ int64) bool { return got == before }) // set forward
	check(ago(0), func(got, now int64) bool { return got > before && got-now < 1e9 })
}

func dial(t *testing.T, p *proc) {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}
