package deploytest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/dev/testsets"
)

// Grafana does not start on an address that others can reach with a password that is easy to guess.
// There is no /run.sh here, so a start that is not refused fails at that.
func TestGrafanaRefuses(t *testing.T) {
	for _, row := range []struct {
		bind, password string
		refused        bool
	}{
		{"127.0.0.1", "a", false},
		{"0.0.0.0", "a", true},
		{"0.0.0.0", "elevenchars", true},
		{"0.0.0.0", "twelve-chars", false},
		{"192.168.1.127", "a", true}, // 127 elsewhere is not loopback
		{"", "a", true},              // for Docker, an empty address means all
	} {
		script := filepath.Join(root, "deploy/grafana/start.sh")
		testsets.Reads(t, script)
		cmd := exec.Command("sh", script)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "BIND=" + row.bind,
			"GF_SECURITY_ADMIN_PASSWORD=" + row.password}
		out, err := cmd.CombinedOutput()
		if err == nil {
			t.Fatal("there is a /run.sh on this machine")
		}
		if got := strings.Contains(string(out), "Grafana is not started"); got != row.refused {
			t.Errorf("BIND=%s, password %s: refused %v, want %v: %s",
				row.bind, row.password, got, row.refused, out)
		}
	}
}

// Alloy is healthy if all addresses that it checks answer 200.
func TestReady(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here, which the script is for")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/a/ready" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, row := range []struct {
		urls string
		want bool
	}{
		{host + "/a/ready", true},
		{host + "/a/ready " + host + "/a/ready", true},
		{host + "/a/ready " + host + "/b", false},
		{host + "/b " + host + "/a/ready", false},
		{strings.TrimPrefix(closed.URL, "http://") + "/a/ready", false},
	} {
		script := filepath.Join(root, "deploy/alloy/ready.sh")
		testsets.Reads(t, script)
		args := append([]string{script}, strings.Fields(row.urls)...)
		out, err := exec.Command(bash, args...).CombinedOutput()
		if (err == nil) != row.want {
			t.Errorf("%s: %v %s, want ready: %v", row.urls, err, out, row.want)
		}
	}
}
