package kubernetes

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch"
	"prony.example/internal/launch/launchtest"
)

func TestMain(m *testing.M) {
	Guard()
	if dir := os.Getenv(labEnv); dir != "" {
		if err := otherLab(dir); err != nil {
			panic(err)
		}
	}
	os.Exit(launchtest.Main(m))
}

// kubectl calls kubectl for a test, without a namespace.
func kubectl(t testing.TB, input string, args ...string) string {
	t.Helper()
	cmd := exec.Command("kubectl", args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %q: %v: %s", args, err, out)
	}
	return string(out)
}

// home holds the namespace and the image for the tests of this process.
var home struct {
	sync.Once
	namespace, image, lacks string
}

// needsCluster skips a test without a cluster that has this machine as node, or without ctr (part
// of containerd), which copies an image to it.
func needsCluster(t testing.TB) {
	t.Helper()
	testsets.Whole(t, "pods of a Kubernetes cluster")
	home.Do(func() {
		if out, err := exec.Command("kubectl", "version", "--request-timeout=5s").
			CombinedOutput(); err != nil {
			home.lacks = "no cluster is reached by kubectl: " + said(string(out)+err.Error())
			return
		}
		home.image = fmt.Sprintf("prony-test-act:%d", os.Getpid())
		load := exec.Command("ctr", "images", "import", "-")
		load.Stdin = bytes.NewReader(launchtest.Image(t, home.image, nil))
		if out, err := load.CombinedOutput(); err != nil {
			home.lacks = "no image is brought to the node by ctr: " + said(string(out)+err.Error())
			return
		}
		home.namespace = fmt.Sprintf("prony-test-%d", os.Getpid())
		kubectl(t, "", "create", "namespace", home.namespace)
		launchtest.AfterAll(func() {
			for _, c := range [][]string{{"kubectl", "delete", "namespace", home.namespace},
				{"ctr", "images", "rm", "docker.io/library/" + home.image}} {
				if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
					panic(fmt.Sprintf("%q: %v: %s", c, err, out))
				}
			}
		})
	})
	if home.lacks != "" {
		t.Skip(home.lacks)
	}
	testsets.Once(
		t,
		"pods",
		testsets.Needs{Facts: []string{testsets.Version("kubectl", "version")}},
	)
}

func launcher(t testing.TB, o Options) *Launcher {
	t.Helper()
	needsCluster(t)
	if o.Namespace == "" {
		o.Namespace = home.namespace
	}
	l, _, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// left lists the jobs, pods and services of labs in the tests' namespace.
func left(t testing.TB) []string {
	t.Helper()
	return strings.Fields(kubectl(t, "", "get", "jobs,pods,services", "--output=name",
		"--namespace="+home.namespace, "--selector="+labelLab))
}

// start launches a spec, and fills in the fields that every spec has.
func start(t testing.TB, l *Launcher, s launch.Spec) *proc {
	t.Helper()
	s.Name, s.LogFile = "t", filepath.Join(t.TempDir(), "log")
	if s.Image == "" {
		s.Image = home.image
	}
	p, err := l.Launch(context.Background(), s)
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

func says(t testing.TB, p *proc, line string) {
	t.Helper()
	testsets.Eventually(t, fmt.Sprintf("%q in its log", line), func() bool {
		return slices.Contains(p.Log(99), line)
	})
}

func TestConformance(t *testing.T) {
	needsCluster(t)
	for _, o := range []Options{{}, {Service: true}} {
		name := Name
		if o.Service {
			name = ServiceName
		}
		t.Run(name, func(t *testing.T) {
			launchtest.Run(t, func(t *testing.T) launch.Launcher {
				return launcher(t, o)
			}, launchtest.Target{Program: "/act", Image: home.image, Granted: true, Single: true,
				Rotated: true})
		})
	}
	if names := left(t); len(names) > 0 {
		t.Errorf("%q are left", names)
	}
}
