package launchtest

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"prony/internal/compiler"
)

// program is what images hold, built once.
var program = sync.OnceValues(func() ([]byte, error) {
	return Build("prony/internal/launch/launchtest/testdata/act")
})

// Build builds a program of this module statically, so that it needs no base image.
func Build(pkg string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "prony-launchtest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "program")
	build := exec.Command("go", compiler.Build("-o", file, pkg)...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", compiler.Lavish)
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build %s: %w: %s", pkg, err, out)
	}
	return os.ReadFile(file)
}

// Image makes an image of a program that acts, /act, and of nothing else, of the form that `docker
// save` gives, with what its Dockerfile would have said.
func Image(t testing.TB, ref string, config map[string]any) []byte {
	t.Helper()
	binary, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return ImageOf(t, ref, "act", binary, config)
}

// ImageOf is an image of one static program, by its name in the root.
func ImageOf(t testing.TB, ref, name string, binary []byte, config map[string]any) []byte {
	t.Helper()
	layer := archive(t, packed{name, binary, 0o755}, packed{"open/", nil, 0o777},
		packed{"etc/passwd", []byte("toor:x:0:0::/:\nservice:x:1001:1001::/:\n"), 0o644})
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
	return archive(t, packed{"config.json", about, 0o644},
		packed{"manifest.json", manifest, 0o644}, packed{"layer.tar", layer, 0o644})
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
