package docker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"

	"github.com/moby/moby/client"

	"prony/internal/launch"
	"prony/internal/launch/launchtest"
	"prony/internal/tests"
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

// engine is the maker's own client of the engine of this machine, so that what the launcher did is
// seen by other eyes; without an engine a test is left out.
func engine(t testing.TB) *client.Client {
	t.Helper()
	tests.Whole(t, "containers")
	path, err := socketOf("", os.Getenv("DOCKER_HOST"))
	if err != nil {
		t.Skip(err)
	}
	if _, err := connect(context.Background(), path); err != nil {
		t.Skip(err)
	}
	e, err := client.New(client.WithHost("unix://" + path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	v, err := e.ServerVersion(context.Background(), client.ServerVersionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tests.Once(t, "containers", tests.Needs{Facts: []string{fmt.Sprintf("engine %+v", v)}})
	return e
}

// imageOf has the engine hold an image of a program that acts.
func imageOf(t testing.TB, name string, config map[string]any) string {
	t.Helper()
	e := engine(t)
	ref := fmt.Sprintf("prony-test-%s:%d", name, os.Getpid())
	got, err := e.ImageLoad(context.Background(),
		bytes.NewReader(launchtest.Image(t, ref, config)))
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if out, err := io.ReadAll(got); err != nil || !bytes.Contains(out, []byte(ref)) {
		t.Fatalf("load image: %v: %s", err, out)
	}
	return ref
}

// plain is the image that most tests use.
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
	e, err := client.New()
	if err != nil {
		panic(err)
	}
	defer e.Close()
	if _, err := e.ImageRemove(context.Background(), ref, client.ImageRemoveOptions{
		Force: true}); err != nil {
		panic(err)
	}
}

func launcher(t testing.TB, o Options) *Launcher {
	t.Helper()
	if o.Socket == "" {
		engine(t) // without one the test is left out
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
