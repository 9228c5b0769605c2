package testsets

import (
	"context"
	"crypto/rand"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/buildflags"
	"prony.example/internal/base/cache"
)

// Versity is a server of the S3 protocol that stores files.
const Versity = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"

// S3 starts a real S3 server until the end of the test. It returns the environment variables of its
// clients, and the folder whose subfolders are its buckets. args are further arguments of versitygw
// for its gateway.
func S3(t testing.TB, args ...string) (env map[string]string, dir string) {
	t.Helper()
	free := httptest.NewServer(nil) // reserves a free port, which it then releases
	location := free.Listener.Addr().String()
	free.Close()
	dir = t.TempDir()
	env = map[string]string{"AWS_ACCESS_KEY_ID": "prony-test", "AWS_REGION": "eu-test-1",
		"AWS_SECRET_ACCESS_KEY": rand.Text(), "AWS_ENDPOINT_URL": "http://" + location}
	server := exec.Command(Tool(t, Versity), append([]string{"--port", location, "--region",
		env["AWS_REGION"], "--iam-dir", t.TempDir(), "posix", "--sidecar", t.TempDir()},
		append(args, dir)...)...)
	server.Env = append(os.Environ(), "ROOT_ACCESS_KEY_ID="+env["AWS_ACCESS_KEY_ID"],
		"ROOT_SECRET_ACCESS_KEY="+env["AWS_SECRET_ACCESS_KEY"])
	var output strings.Builder
	server.Stdout, server.Stderr = &output, &output
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Process.Kill() //nolint:errcheck // it may have ended
		server.Wait()         //nolint:errcheck // by that signal
		if t.Failed() {
			t.Logf("the server of S3's protocol: %s", output.String())
		}
	})
	for range 200 {
		if c, err := net.Dial("tcp", location); err == nil {
			c.Close() //nolint:errcheck // only the connection matters
			return env, dir
		}
		<-time.After(50 * time.Millisecond)
	}
	t.Fatal("the server of S3's protocol does not listen")
	return nil, ""
}

// Home is the import path of prony-home's module, in the folder home.
const Home = buildflags.Module + "/home"

// Build builds a program of this repository into a file, as make does.
func Build(t testing.TB, file, pkg string) {
	t.Helper()
	build := exec.Command("go", buildflags.Build("-o", file, pkg)...)
	if strings.HasPrefix(pkg, Home+"/") {
		out, err := exec.Command("go", "list", "-f", "{{.Module.Dir}}", "-find",
			buildflags.Module+"/internal/dev/testsets").Output()
		if err != nil {
			t.Fatalf("find the module of %s: %v", pkg, err)
		}
		build.Dir = filepath.Join(strings.TrimSpace(string(out)), "home")
	}
	build.Env = append(os.Environ(), buildflags.Lavish)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v: %s", pkg, err, out)
	}
}

// Tool returns the path of a Go program of others, by package and version, built once into the
// cache of tests. If the build fails, it skips the test.
func Tool(t testing.TB, subject string) (program string) {
	t.Helper()
	dir, err := Folder()
	if err != nil {
		t.Fatal(err)
	}
	name, version, _ := strings.Cut(subject, "@")
	dir = filepath.Join(dir, "tools", path.Base(name)+"@"+version)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	unlock, err := cache.Lock(context.Background(), dir+".lock", subject, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	program = filepath.Join(dir, path.Base(name))
	if _, err := os.Stat(program); err == nil {
		return program
	}
	build := exec.Command("go", "install", "-trimpath", "-ldflags=-s -w", subject)
	build.Dir = t.TempDir() // outside of any module
	build.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=", "CGO_ENABLED=0",
		buildflags.Lavish)
	if out, err := build.CombinedOutput(); err != nil {
		last := strings.Split(strings.TrimSpace(string(out)), "\n")
		t.Skipf("%s cannot be had: %v: %s", subject, err, last[len(last)-1])
	}
	return program
}
