package socket

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"prony.example/record"
)

func TestExplain(t *testing.T) {
	check := func(err error, unanswered bool, party Party, want string) {
		t.Helper()
		for _, wrapped := range []error{err, fmt.Errorf("dial: %w", err)} {
			got := Explain(wrapped, unanswered)
			if Blame(got) != party || !strings.Contains(got.Error(), want) ||
				!errors.Is(got, err) && !errors.Is(got, ErrNone) {
				t.Errorf("%v is of %q: %v; want %q: %s", err, Blame(got), got, party, want)
			}
			if again := Explain(got, unanswered); again != got {
				t.Errorf("%v: explained twice it is %v", err, again)
			}
		}
	}
	check(syscall.EADDRNOTAVAIL, false, Machine, "no free port on this machine")
	check(syscall.EADDRNOTAVAIL, false, Machine, "net.ipv4.ip_local_port_range")
	check(syscall.EMFILE, false, Machine, ErrNone.Error())
	check(syscall.ENFILE, false, Machine, ErrNone.Error())
	check(ErrNone, false, Machine, ErrNone.Error())
	check(syscall.ENETUNREACH, false, Machine, "no route")
	check(syscall.EHOSTUNREACH, false, Machine, "cannot reach the host")
	check(syscall.EACCES, false, Machine, "forbids the connection")
	check(syscall.ENOBUFS, false, Machine, "no memory")
	check(syscall.EINVAL, false, Options, "needs a zone")
	_, long := net.Dial("unix", "/tmp/"+strings.Repeat("x", 110))
	check(long, false, Options, "the path of the Unix socket is too long (invalid argument); use")
	check(syscall.ECONNREFUSED, false, Service, "connection refused")
	check(syscall.ECONNRESET, false, Service, "connection reset")
	check(io.EOF, false, Service, "EOF")
	check(errors.New("odd"), false, Service, "odd")
	for _, err := range []error{said(40), said(42), said(116)} {
		check(err, true, Options, "there is none to give (remote error: tls: ")
	}
	check(said(40), false, Options, "has no TLS version, cipher or certificate")
	check(said(116), false, Options, "asks for a client certificate")
	check(said(48), true, Options, "rejects the client certificate")
	check(said(112), false, Options, "does not know this server name")
	check(said(120), false, Options, "without --http2")
	check(said(80), false, Service, "read its log")
	check(said(10), false, Service, "unexpected message")
	check(&net.OpError{Op: "local error", Err: tls.AlertError(40)}, false, Service, "local error")
	check(x509.UnknownAuthorityError{}, false, Options, "--ca FILE, or any certificate with -k")
	check(x509.HostnameError{Host: "127.0.0.1", Certificate: &x509.Certificate{
		DNSNames: []string{"a.test", "b.test"}, IPAddresses: []net.IP{net.IPv4(1, 2, 3, 4)}}},
		false, Options, "is for a.test, b.test, 1.2.3.4, not for 127.0.0.1; set the server name")
	check(x509.HostnameError{Host: "a.test", Certificate: &x509.Certificate{
		Subject: pkix.Name{CommonName: "a.test"}}}, false, Options,
		`no subject alternative name, and clients ignore its common name "a.test"; issue one`)
	day := time.Date(2020, 2, 3, 0, 0, 0, 0, time.UTC)
	check(x509.CertificateInvalidError{Reason: x509.Expired, Cert: &x509.Certificate{
		NotBefore: day, NotAfter: day.AddDate(1, 0, 0)}}, false, Options,
		"valid from 2020-02-03 00:00 UTC to 2021-02-03 00:00 UTC")
	if err := Explain(nil, true); err != nil || Blame(nil) != Service {
		t.Error(err)
	}
	if Machine != record.PartyMachine || Options != record.PartyOptions {
		t.Error("records name the parties otherwise")
	}
}

// said is an alert of the server.
func said(alert uint8) error {
	return &net.OpError{Op: "remote error", Err: tls.AlertError(alert)}
}

// Whether a service runs is a question only for one that is absent.
func TestHandshake(t *testing.T) {
	for _, err := range []error{syscall.ECONNREFUSED, syscall.ECONNRESET, io.EOF,
		io.ErrUnexpectedEOF, os.ErrDeadlineExceeded} {
		if got := Handshake(err, false); got != err {
			t.Errorf("%v: %v", err, got)
		}
	}
	for _, err := range []error{errors.New("tls: server selected unsupported version"), said(10),
		said(40), x509.HostnameError{Certificate: &x509.Certificate{}}} {
		if got := Handshake(err, false).Error(); !strings.Contains(got, "; ") {
			t.Errorf("%v: %s has no next step", err, got)
		}
	}
}

// A certificate that the server requests without need stays unanswered and breaks nothing; one that
// is configured is given.
func TestCertify(t *testing.T) {
	c := &tls.Config{}
	unanswered := Certify(c)
	if pair, err := c.GetClientCertificate(nil); err != nil || len(pair.Certificate) > 0 ||
		!unanswered.Load() {
		t.Errorf("%+v, error %v", pair, err)
	}
	c = &tls.Config{Certificates: make([]tls.Certificate, 1)}
	if Certify(c); c.GetClientCertificate != nil {
		t.Error("the configured certificate is not given")
	}
}
