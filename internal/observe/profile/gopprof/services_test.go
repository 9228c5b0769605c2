package gopprof

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/dev/tidy"
)

// TestServicesOwnDoors checks that the catalog's Go services serve profiles, which expose memory,
// only to callers by address: a page in a browser can call them only by a name of its own.
func TestServicesOwnDoors(t *testing.T) {
	repo, err := tidy.Root()
	if err != nil {
		t.Fatal(err)
	}
	all, err := filepath.Glob(filepath.Join(repo, "services", "go-*"))
	if err != nil || len(all) < 3 {
		t.Fatalf("services %v, %v", all, err)
	}
	needs := testsets.Needs{Files: []string{"services"}}
	testsets.Once(t, "profiles of a Go service", needs)
	more := testsets.More(t, needs)
	for _, dir := range all {
		if !more && filepath.Base(dir) != "go-nethttp" {
			continue
		}
		t.Run(filepath.Base(dir), func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "service")
			build := exec.Command("go", "build", "-trimpath", "-tags=netgo,osusergo", "-o",
				program, ".")
			build.Dir = dir
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			at := freePort(t)
			service := exec.Command(program)
			service.Env = append(os.Environ(), "PORT="+strconv.Itoa(freePort(t)),
				"PPROF_PORT="+strconv.Itoa(at))
			if err := service.Start(); err != nil {
				t.Fatal(err)
			}
			defer service.Wait()         //nolint:errcheck // it is killed
			defer service.Process.Kill() //nolint:errcheck // it may have ended
			for host, want := range map[string]int{"": 200, "rebound.example": 421,
				"localhost.example:1": 421, "[::1]:1": 200} {
				if got := profilesBy(t, at, host, ""); got != want {
					t.Errorf("called as %q: %d, want %d", host, got, want)
				}
			}
			if got := profilesBy(t, at, "", "http://127.0.0.1:1"); got != 421 {
				t.Errorf("for a page of another origin: %d", got)
			}
		})
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// profilesBy requests the list of profiles with a host and an origin, when the service listens.
func profilesBy(t *testing.T, port int, host, origin string) int {
	t.Helper()
	for range 3000 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			"http://127.0.0.1:"+strconv.Itoa(port)+"/debug/pprof/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		if origin != "" {
			req.Header.Set("Origin", origin)
		}
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			res.Body.Close()
			return res.StatusCode
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("nobody listens within a minute")
	return 0
}
