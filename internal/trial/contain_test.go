package trial_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/launch"
	"prony.example/internal/launch/fake"
	"prony.example/internal/observe/profile"
	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/internal/trial"
	"prony.example/record"
)

// apart is a launcher of containers with a network of their own.
type apart struct{ *fake.Launcher }

func (apart) Listen() string { return "0.0.0.0" }

func (a apart) Launch(ctx context.Context, s launch.Spec) (launch.Process, error) {
	p, err := a.Launcher.Launch(ctx, s)
	return elsewhere{p}, err
}

// elsewhere is a process at another address than this machine's.
type elsewhere struct{ launch.Process }

func (e elsewhere) Addr() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, 8, 7}), e.Process.Addr().Port())
}

// If the lab runs as root, a service writes its files as another user.
func TestFoldersOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root's services are another user's")
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if _, err := w.run(context.Background(), w.experiment("a")); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(w.dir, "logs"))
		if err != nil || info.Mode().Perm() != 0o777 || info.Mode()&os.ModeSticky == 0 {
			t.Errorf("logs are %v, %v", info.Mode(), err)
		}
	})
}

// A trial of a container starts its image, listens in its own network, and may write only folders
// that the lab reads; the record names launcher and image.
func TestLifeOfAContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var got launch.Spec
		start := w.launcher.Start
		w.launcher.Start = func(s launch.Spec) (http.Handler, time.Duration, error) {
			got = s
			return start(s)
		}
		w.lab.Containers = map[string]launch.Launcher{"docker": apart{w.launcher}}
		e := w.experiment("a")
		e.Plan.Trials[0].Launcher = "docker"
		e.Rides = map[string]trial.Ride{e.Plan.Trials[0].Variant: {Path: "/agents/x.jar",
			Files: filepath.Join(w.dir, "agents", "none")}} // this folder does not exist
		subject := e.Subjects["a"]
		subject.Target.Runtime = "jvm"
		e.Subjects["a"] = subject
		*e.Subjects["a"].Built = service.Built{Hash: "h", SHA256: "5a", ImageBytes: 7,
			Images: map[string]string{"": "prony/a:h"}, Front: "prony/a:h",
			Tools: map[string]service.Tool{"go": {Version: "1.26.5"}}}
		records, err := w.run(context.Background(), e)
		if err != nil || len(records) != 1 || records[0].Outcome != record.Measured {
			t.Fatalf("%d records, error %v", len(records), err)
		}
		r := records[0]
		if r.Target.Launcher != "docker" || r.Artifact.Image != "prony/a:h id sha256:5a" ||
			r.Artifact.ImageBytes != 7 {
			t.Errorf("launcher %q, artifact %+v", r.Target.Launcher, r.Artifact)
		}
		if tools := fmt.Sprint(r.Provenance.Tools); tools != "map[go:1.26.5]" {
			t.Errorf("tools %s, want the image's", tools)
		}
		if got.Image != "prony/a:h" || !slices.Contains(got.Env, "HOST=0.0.0.0") {
			t.Errorf("image %q, environment %q", got.Image, got.Env)
		}
		logs := filepath.Join(w.lab.Dir, "logs")
		dumps := filepath.Join(w.lab.Dir, "dumps", r.Trial)
		want := fmt.Sprint([]launch.Mount{{Path: "/agents/x.jar"}, {Path: logs, Write: true},
			{Path: dumps, Destination: "/dumps", Write: true}})
		if fmt.Sprint(got.Mounts) != want {
			t.Errorf("mounts %v, want %v", got.Mounts, want)
		}
		info, err := os.Stat(logs)
		if err != nil || info.Mode().Perm() != 0o777 || info.Mode()&os.ModeSticky == 0 {
			t.Errorf("logs: %v, error %v; others must be able to write there", info.Mode(), err)
		}
		if _, err := os.Stat(filepath.Dir(dumps)); err == nil || len(r.Dumps) > 0 {
			t.Errorf("a folder for dumps is left without a dump (%+v)", r.Dumps)
		}
	})
}

// A container over TLS gets certificate and key, which others can read while it runs and which are
// removed after it. Requests use a name, because the container's address is unknown before it
// starts; those to a process use its address.
func TestContainerOverTLS(t *testing.T) {
	for launcher, asked := range map[string]string{"": "", "docker": "localhost"} {
		synctest.Test(t, func(t *testing.T) {
			w, names := newWorld(t), map[string]bool{}
			var got launch.Spec
			start := w.launcher.Start
			w.launcher.Start = func(s launch.Spec) (http.Handler, time.Duration, error) {
				got = s
				h, after, err := start(s)
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if launcher != "" && r.Host != asked {
						t.Errorf("asked for host %s", r.Host)
					}
					h.ServeHTTP(w, r)
				}), after, err
			}
			w.lab.Containers = map[string]launch.Launcher{"docker": apart{w.launcher}}
			w.lab.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := w.launcher.Dial(ctx, network, addr)
				if err != nil {
					return nil, err
				}
				return sealed(t, conn, got.Give, func(name string) { names[name] = true }), nil
			}
			e := w.experiment("a")
			e.Plan.Suite.Variants = []suite.Variant{{Name: "https", Protocol: "https"}}
			e.Plan.Trials = e.Plan.Trials[:1]
			e.Plan.Trials[0].Launcher, e.Plan.Trials[0].Variant = launcher, "https"
			e.Subjects["a"].Service.Protocols = []string{"https"}
			records, err := w.run(context.Background(), e)
			if err != nil || len(records) != 1 || records[0].Outcome != record.Measured {
				t.Fatalf("%+v, error %v", records[0].Failure, err)
			}
			if len(names) != 1 || !names[asked] {
				t.Errorf("launcher %q: asked for %v, want %q", launcher, names, asked)
			}
			if mounted := slices.Contains(got.Mounts, launch.Mount{Path: got.Give}); mounted !=
				(launcher != "") {
				t.Errorf("launcher %q: mounts %v, certificate in %s", launcher, got.Mounts,
					got.Give)
			}
			if left, _ := filepath.Glob(filepath.Join(w.dir, "*.tls")); len(left) > 0 {
				t.Errorf("launcher %q: %v is left", launcher, left)
			}
		})
	}
}

// sealed returns the client's end of a connection whose other end has TLS removed, by the
// certificate in a folder: a socket, as the engine needs one. It calls asked with the name that the
// client requests.
func sealed(t *testing.T, plain net.Conn, dir string, asked func(string)) net.Conn {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // one connection suffices
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	over := tls.Server(server, &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (
		*tls.Certificate, error) {
		asked(h.ServerName)
		return &pair, nil
	}})
	pass := func(to, from net.Conn) {
		io.Copy(to, from) //nolint:errcheck // until either end closes
		to.Close()
		from.Close()
	}
	go pass(plain, over)
	go pass(over, plain)
	return client
}

// A target whose image cannot be built fails its trials in containers, and runs as a process.
func TestLackingImage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.lab.Containers = map[string]launch.Launcher{"docker": w.launcher}
		e := w.experiment("a")
		contained := e.Plan.Trials[0]
		contained.Launcher, contained.ID = "docker", contained.ID+"-docker"
		e.Plan.Trials = append(e.Plan.Trials[:1], contained)
		e.Lacking[contained.ID] = fmt.Errorf("no such base")
		records, err := w.run(context.Background(), e)
		if err != nil || len(records) != 2 {
			t.Fatalf("%d records, error %v", len(records), err)
		}
		if records[0].Outcome != record.Measured {
			t.Errorf("as a process: %+v", records[0].Failure)
		}
		if f := records[1].Failure; f == nil || f.Step != "build" ||
			!strings.Contains(f.Error, "no such base") {
			t.Errorf("in a container: %+v", f)
		}
	})
}

// A container's pages or profiles listen in its network, at an address that is known after its
// start.
func TestWatchingAContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var env []string
		var mounts []launch.Mount
		start := w.launcher.Start
		w.launcher.Start = func(s launch.Spec) (http.Handler, time.Duration, error) {
			env, mounts = s.Env, s.Mounts
			return start(s)
		}
		home := &listener{w: w}
		w.lab.Home, w.lab.Containers = home, map[string]launch.Launcher{"docker": apart{w.launcher}}
		port := 8000
		w.lab.Port = func() (int, error) { port++; return port, nil }
		w.lab.Tools.AsyncProfiler = "/tools/linux/lib.so"
		var pprof, library string
		w.lab.Profiler = func(s profile.Subject, _, _ string) (profile.Collector, error) {
			pprof, library = s.PprofURL, s.Tools.AsyncProfiler
			return &sampler{w: w}, nil
		}
		e := w.watching("observe: {telemetry: true, gc: true, profile: [cpu]}\nvariants: "+
			"[{name: agent, env: {X: '{metricsHost}:{metricsPort}'}}]\n",
			func(s *suite.Suite) { s.Variants[0].Scrape = "/metrics" })
		e.Plan.Trials = e.Plan.Trials[slices.IndexFunc(e.Plan.Trials, func(x suite.Trial) bool {
			return x.Variant == "agent"
		}):][:1]
		e.Plan.Trials[0].Launcher = "docker"
		own := w.dir // an existing folder
		e.Rides = map[string]trial.Ride{"agent": {Files: own}}
		e.Subjects["a"].Service.Language = "Go" // Go services serve their profiles
		*e.Subjects["a"].Built = service.Built{Images: map[string]string{"": "prony/a:h"},
			Front: "prony/a:h"}
		records, err := w.run(context.Background(), e)
		if err != nil || records[0].Outcome != record.Measured {
			t.Fatal(err, records[0].Failure)
		}
		at := slices.IndexFunc(env, func(v string) bool {
			return strings.HasPrefix(v, "X=0.0.0.0:")
		})
		if at < 0 || !slices.Contains(env, "PPROF_HOST=0.0.0.0") {
			t.Fatalf("environment %q", env)
		}
		page := strings.Replace(env[at], "X=0.0.0.0", "http://10.9.8.7", 1)
		if len(home.trial.Scrape) != 1 ||
			home.trial.Scrape[0].URL != page+"/metrics" {
			t.Errorf("pages %+v", home.trial.Scrape)
		}
		if pprof != page+"/debug/pprof/" {
			t.Errorf("profiles at %s", pprof)
		}
		if library != w.lab.Tools.AsyncProfiler {
			t.Errorf("the profiler looks for its library at %q", library)
		}
		for _, want := range []launch.Mount{{Path: own}, {Path: "/tools/linux"},
			{Path: filepath.Join(w.dir, "profiles"), Write: true}} {
			if !slices.Contains(mounts, want) {
				t.Errorf("no %+v among the mounts %v", want, mounts)
			}
		}
		log := "/" + records[0].Trial + ".a.%p.gc.log"
		if !slices.ContainsFunc(env, func(v string) bool { return strings.Contains(v, log) }) {
			t.Errorf("no part in the collector's log: %q", env)
		}
		if launched := slices.IndexFunc(w.notes, func(n string) bool {
			return strings.HasPrefix(n, "launch")
		}); slices.Index(w.notes, "scrape") < launched {
			t.Errorf("the home is told where to read before that is known: %q", w.notes)
		}
	})
}
