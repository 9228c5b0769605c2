package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
)

// identity makes what the chart makes: a folder for the coordinator, and the key of its generators.
func identity(t *testing.T) (dir, key string) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: clock.Wall().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &secret.PublicKey, secret)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	dir, token := t.TempDir(), strings.Repeat("Ab3x", 16)
	for name, text := range map[string]string{
		"token":   token + "\n",
		"tls.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		"tls.key": string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sum := sha256.Sum256(der)
	return dir, token + ":" + hex.EncodeToString(sum[:])
}

// As in a cluster, generators begin before their coordinator, already have its key and get their
// index from the environment. The identity stays for the next load.
func TestGeneratorsWithIdentity(t *testing.T) {
	testsets.Whole(t, "every generator")
	testsets.Live(t)
	url, asked := counting(t)
	dir, key := identity(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := free.Addr().String()
	free.Close() //nolint:errcheck // its port is reused
	ended := make(chan error, 2)
	for i := range 2 {
		g := exec.Command(os.Args[0], "generate", "--of", at, "--wait", "2m")
		g.Env = append(os.Environ(), keyName+"="+key, indexName+"="+itoa(i), "PRONY_TEST_MAIN=1")
		if err := g.Start(); err != nil {
			t.Fatal(err)
		}
		go func() { ended <- g.Wait() }()
	}
	select {
	case err := <-ended:
		t.Fatalf("a generator has not waited: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	p := startLab(t, url, "-r", "300", "-d", "400ms", "-c", "8", "--generators", "2", "--json",
		"--listen", at, "--identity", dir, "--view", "none")
	for p.told.Scan() {
		if text := p.told.Text(); strings.Contains(text, key[:64]) {
			t.Errorf("a secret is told: %s", text)
		}
	}
	p.Wait() //nolint:errcheck // a busy machine makes it INVALID
	l := loadPrinted(t, p.out.String())
	if len(l.Generators) != 2 || l.Scheduled != l.Answered || l.Answered == 0 ||
		l.Generators[0].Sent+l.Generators[1].Sent != asked.Load() {
		t.Errorf("%d of %d answered, %d asked, by %+v", l.Answered, l.Scheduled, asked.Load(),
			l.Generators)
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Errorf("a generator: %v", err)
		}
	}
	if !exists(filepath.Join(dir, "tls.key")) {
		t.Error("the identity is gone with the load")
	}
}

// An invalid identity or index is reported without a secret.
func TestIdentityRefused(t *testing.T) {
	args := []string{"load", "http://127.0.0.1:9/", "--generators", "1", "--listen", "127.0.0.1:0",
		"--view", "none", "--identity"}
	for name, row := range map[string]struct{ text, want string }{
		"token":   {"sesame", "the token has 6 characters, but it must have 64"},
		"tls.crt": {"sesame", "failed to find any PEM data"},
		"tls.key": {"sesame", "failed to find any PEM data"},
	} {
		dir, _ := identity(t)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, stderr, exit := really(append(args, dir)...)
		if exit == 0 || !strings.Contains(stderr, row.want) || strings.Contains(stderr, "sesame") {
			t.Errorf("%s: exit %d, %s; want %q", name, exit, stderr, row.want)
		}
	}
	if _, stderr, _ := really(append(args, t.TempDir())...); !strings.Contains(stderr, "token") {
		t.Errorf("no file: %s", stderr)
	}
	t.Setenv(indexName, "-1")
	if _, stderr, _ := really("generate", "--of", "127.0.0.1:9"); !strings.Contains(stderr,
		indexName+`: "-1" is not a valid index`) {
		t.Errorf("a wrong index: %s", stderr)
	}
}
