package launchtest

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"testing/fstest"

	"prony.example/internal/base/buildflags"
)

// program is the binary in the images, built once.
var program = sync.OnceValues(func() ([]byte, error) {
	return Build("prony.example/internal/launch/launchtest/testdata/act")
})

// Build builds a program of this module statically, so that its image needs no base image.
func Build(pkg string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "prony-launchtest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "program")
	build := exec.Command("go", buildflags.Build("-o", file, pkg)...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", buildflags.Lavish)
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build %s: %w: %s", pkg, err, out)
	}
	return os.ReadFile(file)
}

// Image returns an image, in the format of `docker save`, that contains only the program /act, with
// the settings of a Dockerfile in config.
func Image(t testing.TB, ref string, config map[string]any) []byte {
	t.Helper()
	binary, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return ImageOf(t, ref, "act", binary, config)
}

// ImageOf returns an image with one static program at /name.
func ImageOf(t testing.TB, ref, name string, binary []byte, config map[string]any) []byte {
	t.Helper()
	users := []byte("toor:x:0:0::/:\nservice:x:1001:1001::/:\n")
	layer := archive(t, fstest.MapFS{name: {Data: binary, Mode: 0o755},
		"open": {Mode: fs.ModeDir | 0o777}, "etc": {Mode: fs.ModeDir | 0o755},
		"etc/passwd": {Data: users, Mode: 0o644}})
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
	return archive(t, fstest.MapFS{"config.json": {Data: about, Mode: 0o644},
		"manifest.json": {Data: manifest, Mode: 0o644}, "layer.tar": {Data: layer, Mode: 0o644}})
}

func archive(t testing.TB, files fstest.MapFS) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := errors.Join(w.AddFS(files), w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
