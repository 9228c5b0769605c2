package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
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
	os.Exit(runAll(m))
}

// runAll runs the tests and removes the images that they have made.
func runAll(m *testing.M) int {
	defer func() {
		for _, remove := range cleanups {
			remove()
		}
	}()
	return m.Run()
}

var cleanups []func()

// engine is a client of the engine of this machine; without one a test is left out.
func engine(t testing.TB) *client.Client {
	t.Helper()
	tests.Whole(t, "containers")
	path, err := socketOf("", os.Getenv("DOCKER_HOST"))
	if err != nil {
		t.Skip(err)
	}
	e, err := connect(context.Background(), path)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { e.Close() })
	v, err := e.ServerVersion(context.Background(), client.ServerVersionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tests.Once(t, "containers", tests.Needs{Facts: []string{fmt.Sprintf("engine %+v", v)}})
	return e
}

// program is what the tests launch, built once.
var program = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "prony-docker-test")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "act")
	build := exec.Command("go", "build", "-o", file, "./testdata/act")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build act: %w: %s", err, out)
	}
	return os.ReadFile(file)
})

// image makes an image of that program alone, of the form that `docker save` gives, with what its
// Dockerfile would have said.
func image(t testing.TB, name string, config map[string]any) string {
	t.Helper()
	e := engine(t)
	binary, err := program()
	if err != nil {
		t.Fatal(err)
	}
	layer := archive(t, packed{"act", binary, 0o755}, packed{"open/", nil, 0o777},
		packed{"etc/passwd", []byte("toor:x:0:0::/:\nservice:x:1001:1001::/:\n"), 0o644})
	ref := fmt.Sprintf("prony-test-%s:%d", name, os.Getpid())
	about, err := json.Marshal(map[string]any{"architecture": runtime.GOARCH, "os": "linux",
		"config": config, "rootfs": map[string]any{"type": "layers",
			"diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}}})
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json",
		"RepoTags": []string{ref}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := e.ImageLoad(context.Background(), bytes.NewReader(archive(t,
		packed{"config.json", about, 0o644}, packed{"manifest.json", manifest, 0o644},
		packed{"layer.tar", layer, 0o644})))
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if out, err := io.ReadAll(got); err != nil || !bytes.Contains(out, []byte(ref)) {
		t.Fatalf("load image: %v: %s", err, out)
	}
	return ref
}

type packed struct {
	name string
	data []byte
	mode int64
}

func archive(t testing.TB, files ...packed) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		head := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data))}
		if strings.HasSuffix(f.name, "/") {
			head.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(head); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
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
		plain.ref = image(t, "plain", map[string]any{"User": "1001"})
		cleanups = append(cleanups, func() { removeImage(plain.ref) })
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
