package docker

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch"
	"prony.example/internal/launch/launchtest"
)

func TestMain(m *testing.M) {
	Guard()
	if text := os.Getenv(labEnv); text != "" {
		if err := otherLab(text); err != nil {
			panic(err)
		}
	}
	os.Exit(launchtest.Main(m))
}

// docker runs Docker's own command, to check the launcher's work independently.
func docker(in []byte, args ...string) (out []byte, err error) {
	path, err := socketOf("", os.Getenv("DOCKER_HOST"))
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("docker", args...)
	cmd.Env = append(os.Environ(), "DOCKER_HOST=unix://"+path)
	cmd.Stdin = bytes.NewReader(in)
	out, err = cmd.Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("docker %q: %w: %s", args, err, e.Stderr)
	}
	return out, err
}

// engineVersion is read once, because every test needs it.
var engineVersion = sync.OnceValues(func() ([]byte, error) { return docker(nil, "version") })

// engine skips a test without an engine, or without its command.
func engine(t testing.TB) {
	t.Helper()
	testsets.Whole(t, "containers")
	path, elsewhere := socketOf("", os.Getenv("DOCKER_HOST"))
	_, absent := connect(context.Background(), path)
	_, missing := exec.LookPath("docker")
	if err := cmp.Or(elsewhere, absent, missing); err != nil {
		t.Skip(err)
	}
	v, err := engineVersion()
	if err != nil {
		t.Fatal(err)
	}
	testsets.Once(t, "containers", testsets.Needs{Facts: []string{fmt.Sprintf("engine %s", v)}})
}

// imageOf loads an image of a program that acts into the engine.
func imageOf(t testing.TB, name string, config map[string]any) string {
	t.Helper()
	engine(t)
	ref := fmt.Sprintf("prony-test-%s:%d", name, os.Getpid())
	out, err := docker(launchtest.Image(t, ref, config), "load")
	if err != nil || !bytes.Contains(out, []byte(ref)) {
		t.Fatalf("load image: %v: %s", err, out)
	}
	return ref
}

// plain is the image of most tests.
var plain = struct {
	sync.Once
	ref string
}{}

func plainImage(t testing.TB) string {
	t.Helper()
	engine(t)
	plain.Do(func() {
		plain.ref = imageOf(t, "plain", map[string]any{"User": "1001"})
		launchtest.AfterAll(func() { removeImage(plain.ref) })
	})
	return plain.ref
}

func removeImage(ref string) {
	out, err := docker(nil, "image", "rm", "--force", ref)
	if err != nil || len(out) == 0 { // with --force, a missing object is no error
		panic(fmt.Sprintf("image %s is not removed: %v", ref, err))
	}
}

func launcher(t testing.TB, o Options) *Launcher {
	t.Helper()
	if o.Socket == "" {
		engine(t) // skips the test without an engine
	}
	l, _, err := New(context.Background(), o)
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

func TestConformance(t *testing.T) {
	for _, o := range []Options{{}, {Host: true}} {
		target := launchtest.Target{Program: "/act", Image: plainImage(t)}
		name := Name
		if o.Host {
			name = HostName
		}
		t.Run(name, func(t *testing.T) {
			launchtest.Run(t, func(t *testing.T) launch.Launcher {
				return launcher(t, o)
			}, target)
		})
	}
}
