package selfcert

import (
	"crypto/x509"
	"testing"
	"time"

	"prony.example/internal/base/clock"
)

// TestNew checks that clients that trust a certificate accept it for all of its names during its
// validity, and accept no other certificate.
func TestNew(t *testing.T) {
	c, err := New(time.Minute, "a.example", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(c.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(PEM(c)) {
		t.Fatalf("%s is not a certificate", PEM(c))
	}
	now := clock.Wall()
	check := func(good bool, name string, at time.Time) {
		t.Helper()
		_, err := leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: at})
		if (err == nil) != good {
			t.Errorf("%s at %v: %v", name, at.Sub(now), err)
		}
	}
	check(true, "a.example", now)
	check(true, "127.0.0.1", now)
	check(true, "127.0.0.1", now.Add(-50*time.Minute))
	check(false, "a.example", now.Add(2*time.Minute))
	check(false, "b.example", now)
	check(false, "127.0.0.2", now)
}
