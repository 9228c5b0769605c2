package main

import (
	"bufio"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/load/engine/enginetest"
	"prony.example/record"
)

// closes returns the URL of a server that ends each connection with its hundredth response, with or
// without an announcement.
func closes(t *testing.T, announced bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go enginetest.Serve(l, func(c net.Conn) {
		in := bufio.NewReader(c)
		for n := 1; n <= 100; n++ {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return
			}
			fields := "Content-Length: 2\r\n"
			if n == 100 && announced {
				fields += "Connection: close\r\n"
			}
			if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n"+fields+"\r\nok"); err != nil {
				return
			}
		}
	})
	return "http://" + l.Addr().String() + "/"
}

// judged is a load that a command printed as JSON, and its verdict.
type judged struct {
	Load    record.Load
	Verdict record.Verdict
}

// offeredOf runs prony load as a user does.
func offeredOf(t *testing.T, args ...string) (out judged, stderr string, exit int) {
	t.Helper()
	args = append([]string{"load"}, args...)
	stdout, stderr, exit := really(append(args, "--json", "--view", "none", "-x")...)
	if err := json.Unmarshal([]byte(stdout), &out); err != nil {
		t.Fatalf("%v: exit %d: %s%s", err, exit, stdout, stderr)
	}
	return out, stderr, exit
}

// checkFaultless requires a load without errors that is not INVALID except because of noise.
func checkFaultless(t *testing.T, what string, got judged) {
	t.Helper()
	l := &got.Load
	if l.Errors != (record.Errors{}) || l.Done == 0 || l.Answered+l.Censored != l.Scheduled ||
		l.Reconnects == 0 {
		t.Errorf("%s: %d of %d answered, %d censored, %d reconnects, %+v", what, l.Answered,
			l.Scheduled, l.Censored, l.Reconnects, l.Errors)
	}
	if slices.ContainsFunc(got.Verdict.Findings, func(f record.Finding) bool {
		return f.Rule == "errors" || f.Rule == "answers" || f.Rule == "little"
	}) {
		t.Errorf("%s: %+v", what, got.Verdict)
	}
}

// A server that closes connections after a hundred requests is sound, with every engine and with or
// without an announcement: requests that it did not take are sent again and counted.
func TestServersThatCloseAreSound(t *testing.T) {
	testsets.Cores(t)
	for _, announced := range []bool{true, false} {
		url := closes(t, announced)
		for _, how := range []string{"--engine=auto", "--engine=epoll", "--engine=stack",
			"--rate=2000"} {
			got, _, _ := offeredOf(t, url, "-c", "4", "-d", "400ms", "--lead-in", "100ms", how)
			what := fmt.Sprintf("announced %v, %s", announced, how)
			checkFaultless(t, what, got)
			// At a rate, a connection is closed while it is idle, mostly detected in time.
			retried := got.Load.Retried
			if announced && retried != 0 || !announced && how != "--rate=2000" && retried == 0 {
				t.Errorf("%s: %d retried", what, retried)
			}
		}
	}
}

// A request that must not be sent twice is an error in a class of its own, and the verdict says
// what to do.
func TestPostsToServersThatClose(t *testing.T) {
	testsets.Cores(t)
	got, stderr, exit := offeredOf(t, closes(t, false), "-c", "4", "-d", "400ms", "--lead-in",
		"100ms",
		"-X", "POST", "--body", "x", "--engine=epoll")
	e := got.Load.Errors
	if exit != cli.Invalid || e.Closed == 0 || e.Closed != e.Total() || got.Load.Retried != 0 {
		t.Errorf("exit %d, %d retried, %+v\n%s", exit, got.Load.Retried, e, stderr)
	}
	i := slices.IndexFunc(got.Verdict.Findings, func(f record.Finding) bool {
		return f.Rule == "errors"
	})
	if i < 0 || !strings.Contains(
		wording.Finding(got.Verdict.Findings[i]).Hint, "kept-alive connections") {
		t.Errorf("%+v", got.Verdict)
	}
}

// nginx runs nginx with a line in its configuration, and returns the ports of HTTP/1.1, HTTP/2, and
// both over TLS.
func nginx(t *testing.T, line string) (ports [4]string) {
	t.Helper()
	path, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("no nginx on PATH: install nginx-light to load it")
	}
	dir := t.TempDir()
	signed := httptest.NewUnstartedServer(nil) // for its certificate
	signed.StartTLS()
	defer signed.Close()
	pair := signed.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}))
	put("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	var servers strings.Builder
	for i, how := range []string{"", " http2", " ssl", " ssl http2"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l.Close() // nginx uses this port
		ports[i] = l.Addr().String()
		fmt.Fprintf(&servers, "server { listen %s%s; location / { return 200 ok; } }\n", ports[i],
			how)
	}
	temporary := ""
	for _, of := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temporary += fmt.Sprintf("%s_temp_path %s/%s;\n", of, dir, of)
	}
	put("nginx.conf", fmt.Appendf(nil, "daemon off; master_process off; pid %s/pid;\nevents {}\n"+
		"http { access_log off; %s\n%sssl_certificate %s/cert.pem;\n"+
		"ssl_certificate_key %s/key.pem;\n%s}\n", dir, line, temporary, dir, dir, &servers))
	var said strings.Builder
	cmd := exec.Command(path, "-c", filepath.Join(dir, "nginx.conf"), "-e", "stderr")
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it is there
		cmd.Wait()         //nolint:errcheck // it was killed
	})
	for _, port := range ports {
		eventually(t, "nginx", func() bool {
			c, err := net.DialTimeout("tcp", port, time.Second)
			if err == nil {
				c.Close()
			}
			return err == nil
		})
	}
	return ports
}

// nginx with its default, which closes a connection after 1,000 requests, and with 10, is sound
// over all its protocols.
func TestNginxIsSound(t *testing.T) {
	testsets.Once(t, "nginx that closes connections", testsets.Needs{
		Facts: []string{testsets.Version("nginx", "-v")}})
	testsets.Cores(t)
	for line, requests := range map[string]string{"": "5000", "keepalive_requests 10;": "500"} {
		ports := nginx(t, line)
		for _, row := range []struct{ scheme, port, streams string }{
			{"http", ports[0], ""}, {"h2c", ports[1], "10"}, {"https", ports[2], ""},
			{"h2", ports[3], "10"},
		} {
			for _, engine := range []string{"auto", "epoll", "stack"} {
				args := []string{row.scheme + "://" + row.port + "/", "-c", "4", "-n", requests,
					"--lead-in", "0s", "-k", "--engine", engine}
				if row.streams != "" {
					args = append(args, "--streams", row.streams)
				}
				got, _, _ := offeredOf(t, args...)
				checkFaultless(t, fmt.Sprintf("%q, %s, %s", line, row.scheme, engine), got)
				t.Logf("%q, %s, %s: %d answers, %d reconnects, %d retried", line, row.scheme,
					engine, got.Load.Done, got.Load.Reconnects, got.Load.Retried)
			}
		}
	}
}
