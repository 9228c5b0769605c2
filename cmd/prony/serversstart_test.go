package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/template"
	"time"

	"prony.example/internal/base/cache"
	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
)

// serversDir has the settings and programs of realServers.
const serversDir = "testdata/servers"

// serverFiles is serversDir from the root.
const serverFiles = "cmd/prony/" + serversDir

// place is the folder and the addresses of one server. Templates of settings and commands use it.
type place struct {
	Dir              string // with cert.pem, key.pem, both.pem, and root with what it serves
	Plain, TLS, H2C  string // host:port
	Short            bool   // whether the server ends connections early
	Secure, HTTP2    bool   // the case's protocol, for servers with one socket
	Java, Python, Go string // programs of servers that are libraries
	User             string // this user
}

// running is a started server.
type running struct {
	*place
	of   *realServer
	cmd  *exec.Cmd
	said string // file of its output
}

// fill executes a template of settings or of a command.
func (p *place) fill(t *testing.T, text string) string {
	t.Helper()
	functions := template.FuncMap{"port": func(address string) string {
		_, port, _ := net.SplitHostPort(address)
		return port
	}}
	parsed, err := template.New("").Funcs(functions).Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := parsed.Execute(&out, p); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// freeAddress returns an address of this machine on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// serverPair is the certificate and the RSA key of all servers, made once.
var serverPair = sync.OnceValues(func() (cert, key []byte) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	now := clock.Wall()
	names := &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()),
		Subject: pkix.Name{CommonName: "localhost"}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(24 * time.Hour), DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, names, names, &private.PublicKey, private)
	if err != nil {
		panic(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
})

// newPlace makes the folder of a server, which other users can read: some servers run workers as
// another user.
func newPlace(t *testing.T) *place {
	t.Helper()
	dir, err := os.MkdirTemp("", "prony-server-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) }) //nolint:errcheck // in the folder of temporary files
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	cert, key := serverPair()
	err = errors.Join(os.Chmod(dir, 0o755), os.Mkdir(filepath.Join(dir, "root"), 0o755),
		os.WriteFile(filepath.Join(dir, "cert.pem"), cert, 0o644),
		os.WriteFile(filepath.Join(dir, "key.pem"), key, 0o600),
		os.WriteFile(filepath.Join(dir, "both.pem"), append(cert, key...), 0o600),
		os.WriteFile(filepath.Join(dir, "root/counted"), []byte("ok"), 0o644),
		os.WriteFile(filepath.Join(dir, "root/count"), []byte("0"), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	return &place{Dir: dir, User: me.Username, Plain: freeAddress(t), TLS: freeAddress(t),
		H2C: freeAddress(t)}
}

// built returns a copy of a folder of serversDir in which a command was executed, of this or an
// earlier run: what a server needs that no package of the system contains.
func built(t *testing.T, folder, tool, command string) string {
	t.Helper()
	if _, err := exec.LookPath(tool); err != nil {
		t.Skipf("no %s on PATH", tool)
	}
	from := os.DirFS(filepath.Join(serversDir, folder))
	sum := sha256.New()
	err := fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(from, name)
		fmt.Fprintf(sum, "%s %d %s", name, len(text), text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(sum, command, testsets.Version(tool, "--version"))
	tests, err := testsets.Folder()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(tests, fmt.Sprintf("servers-%s-%x", folder, sum.Sum(nil)[:8]))
	unlock, err := cache.Lock(context.Background(), dir+".lock", "server", func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := os.Stat(filepath.Join(dir, "built")); err == nil {
		return dir
	}
	if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, from)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", command+" && touch built")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("cannot make the server of %s: %v\n%s", folder, err, out)
	}
	return dir
}

// start starts a server and waits until it answers over the protocol at the address.
func (s *realServer) start(t *testing.T, p *place, scheme, address string) *running {
	t.Helper()
	s.prepare(t, p)
	for _, name := range s.files {
		text, err := os.ReadFile(filepath.Join(serversDir, name))
		if err != nil {
			t.Fatal(err)
		}
		err = os.WriteFile(filepath.Join(p.Dir, name), []byte(p.fill(t, string(text))), 0o644)
		if err != nil {
			t.Fatal(err)
		}
	}
	words := strings.Fields(p.fill(t, s.command))
	path, err := exec.LookPath(words[0])
	if err != nil {
		t.Skipf("no %s on PATH", words[0])
	}
	r := &running{place: p, of: s, said: filepath.Join(p.Dir, "said.log")}
	said, err := os.OpenFile(r.said, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	r.cmd = exec.Command(path, words[1:]...)
	r.cmd.Stdout, r.cmd.Stderr = said, said
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r.cmd.Env = append(os.Environ(), strings.Fields(p.fill(t, environment))...)
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.stop(t) })
	for end := clock.Mono() + 120e9; ; time.Sleep(20 * time.Millisecond) {
		_, err := getCount(scheme, address)
		if err == nil {
			return r
		}
		if clock.Mono() > end || hasEnded(r.cmd.Process.Pid) {
			t.Fatalf("%s does not answer: %v: %s", s.name, err, r.output())
		}
	}
}

// environment is what all servers get: folders for their own data, and settings of programs.
const environment = "HOME={{.Dir}} XDG_DATA_HOME={{.Dir}} XDG_CONFIG_HOME={{.Dir}} " +
	"PYTHONPATH={{.Python}} {{if .Short}}SHORT=1 CLOSE=10{{end}} {{if .HTTP2}}SECURE=h2{{end}}"

// prepare makes what the server needs that no package of the system contains.
func (s *realServer) prepare(t *testing.T, p *place) {
	t.Helper()
	if strings.Contains(s.command, "{{.Java}}") {
		p.Java = built(t, "java", "mvn", "mvn -q -B compile dependency:copy-dependencies "+
			"-DoutputDirectory=target/jars -DincludeScope=runtime")
	}
	if strings.Contains(s.command, "{{.Python}}") {
		p.Python = built(t, "python", "python3",
			"python3 -m venv venv && venv/bin/pip install -q -r requirements.txt")
	}
	if strings.Contains(s.command, "{{.Go}}") {
		p.Go = built(t, "go", "go", "go build -o server main.go")
	}
}

// output returns the end of what the server has printed.
func (r *running) output() string {
	text, err := os.ReadFile(r.said)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// reload has the server reload its settings twice, without an end of its service.
func (r *running) reload(t *testing.T) {
	t.Helper()
	for range 2 {
		time.Sleep(700 * time.Millisecond)
		if err := r.cmd.Process.Signal(r.of.reload); err != nil {
			t.Fatal(err)
		}
	}
}

// stop ends the server politely, or after 5 s with its children.
func (r *running) stop(t *testing.T) {
	t.Helper()
	if r.cmd.ProcessState != nil {
		return
	}
	late := time.AfterFunc(testsets.Patience, func() {
		syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
	})
	defer late.Stop()
	r.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
	r.cmd.Wait()                          //nolint:errcheck // it was ended
}

// counted returns the number of requests that the server has counted: by its own counter or, after
// it has stopped, by its access log.
func (r *running) counted(t *testing.T, scheme, address string) int64 {
	t.Helper()
	if r.of.log != "" {
		r.stop(t)
		text, err := os.ReadFile(filepath.Join(r.Dir, r.of.log))
		if err != nil {
			t.Fatalf("%v: %s", err, r.output())
		}
		return int64(strings.Count(string(text), "/counted"))
	}
	text, err := getCount(scheme, address)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// getCount requests the server's own counter. A server that serves files answers a file.
func getCount(scheme, address string) (string, error) {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		Protocols: new(http.Protocols)}
	defer transport.CloseIdleConnections()
	transport.Protocols.SetHTTP1(scheme == "http" || scheme == "https")
	transport.Protocols.SetHTTP2(scheme == "h2")
	transport.Protocols.SetUnencryptedHTTP2(scheme == "h2c")
	url := "http://" + address + "/count"
	if scheme == "https" || scheme == "h2" {
		url = "https://" + address + "/count"
	}
	client := &http.Client{Transport: transport, Timeout: testsets.Patience}
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: status %s", url, response.Status)
	}
	return string(text), err
}
