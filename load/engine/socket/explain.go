package socket

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"

	"prony.example/record"
)

// Party is the cause of an error of a connection: who has to change something.
type Party string

// Parties. The zero value is the service.
const (
	Service Party = ""
	Machine Party = record.PartyMachine
	Options Party = record.PartyOptions
)

// Fault is an error of a connection with its cause and the next step.
type Fault struct {
	Party Party
	Text  string // problem; next step
	cause error
}

func (f *Fault) Error() string { return f.Text }

// Unwrap returns the error that the table explains.
func (f *Fault) Unwrap() error { return f.cause }

// Blame returns the party that caused an error.
func Blame(err error) Party {
	var f *Fault
	switch {
	case errors.As(err, &f):
		return f.Party
	case errors.Is(err, ErrNone):
		return Machine
	}
	return Service
}

// numbers explain errors of the kernel that the service does not cause.
var numbers = map[syscall.Errno]Fault{
	syscall.EADDRNOTAVAIL: {Machine, "no free port on this machine for another connection to " +
		"this address; wait a minute until closed connections leave TIME_WAIT, use and renew " +
		"fewer connections, or widen net.ipv4.ip_local_port_range", nil},
	syscall.ENETUNREACH: {Machine, "this machine has no route to the address; check the address " +
		"and the network", nil},
	syscall.EHOSTUNREACH: {Machine, "this machine cannot reach the host; check the address and " +
		"the network", nil},
	syscall.EAFNOSUPPORT: {Machine, "this machine does not support the address's family; use an " +
		"IPv4 address, or enable IPv6", nil},
	syscall.EACCES: {Machine, "this machine forbids the connection; check the rights of the " +
		"socket's file, the firewall and the sandbox", nil},
	syscall.EPERM: {Machine, "this machine forbids the connection; check the firewall and the " +
		"sandbox", nil},
	syscall.ENOBUFS: {Machine, "this machine has no memory for another socket; use fewer " +
		"connections", nil},
	syscall.ENOMEM: {Machine, "this machine has no memory for another socket; use fewer " +
		"connections", nil},
	syscall.EINVAL: {Options, "a connection to this address is not possible; a link-local " +
		"address needs a zone, such as [fe80::1%25eth0]", nil},
}

// alerts explain the alerts of servers by number (RFC 8446, section 6.2).
var alerts = map[uint64]Fault{
	40: {Options, "the server refuses the handshake: it has no TLS version, cipher or " +
		"certificate for it; set the server name with -H 'Host: NAME', or give a " +
		"certificate with --cert FILE", nil},
	42: {Options, CertificateRefused, nil}, 43: {Options, CertificateRefused, nil},
	44: {Options, CertificateRefused, nil}, 45: {Options, CertificateRefused, nil},
	46: {Options, CertificateRefused, nil}, 48: {Options, CertificateRefused, nil},
	49: {Options, CertificateRefused, nil},
	70: {Options, "the server does not support TLS 1.2 or 1.3; use a server that does", nil},
	71: {Options, "the server requires stronger ciphers than the client has; change its " +
		"configuration", nil},
	80: {Service, "the server failed in the TLS handshake; read its log", nil},
	112: {Options, "the server does not know this server name; set the name with -H 'Host: NAME'",
		nil},
	116: {Options, NoCertificate, nil},
	120: {Options, "the server does not support the requested protocol (ALPN); use another one, " +
		"for example without --http2 or --http3", nil},
}

// Texts for responses in which a server says the same as by an alert.
const (
	CertificateRefused = "the server rejects the client certificate; give one that it trusts " +
		"with --cert FILE"
	NoCertificate = "the server asks for a client certificate and there is none to give; give " +
		"one with --cert FILE"
)

// Explain returns the Fault of an error if the table has one, otherwise the error. unanswered
// reports that the server asked for a client certificate and got none.
func Explain(err error, unanswered bool) error {
	var known *Fault
	if err == nil || errors.As(err, &known) || errors.Is(err, ErrNone) {
		return err
	}
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return ErrNone
	}
	f, ok := explained(err, unanswered)
	if !ok {
		return err
	}
	f.cause = err
	var number syscall.Errno
	var op *net.OpError
	switch _, isAlert := alert(err); { // adds the words that people search for
	case errors.As(err, &number):
		f.Text = strings.Replace(f.Text, "; ", " ("+number.Error()+"); ", 1)
	case isAlert && errors.As(err, &op):
		f.Text = strings.Replace(f.Text, "; ", " ("+op.Error()+"); ", 1)
	}
	return &f
}

func explained(err error, unanswered bool) (Fault, bool) {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		op, isOp := errors.AsType[*net.OpError](err)
		if number == syscall.EINVAL && isOp && op.Net == "unix" {
			return Fault{Options, "the path of the Unix socket is too long; use a path of at " +
				"most 107 bytes (103 on macOS)", nil}, true
		}
		f, ok := numbers[number]
		return f, ok
	}
	if n, ok := alert(err); ok {
		switch n {
		case 40, 42, 116:
			if unanswered {
				return Fault{Options, NoCertificate, nil}, true
			}
		}
		f, ok := alerts[n]
		return f, ok
	}
	return certificate(err)
}

// alert returns the number of a server's alert. crypto/tls does not export the type.
func alert(err error) (uint64, bool) {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "remote error" {
		return 0, false
	}
	v := reflect.ValueOf(op.Err)
	if v.Kind() != reflect.Uint8 {
		return 0, false
	}
	return v.Uint(), true
}

// minute is the layout of a certificate's times, some of which are valid for less than a day.
const minute = "2006-01-02 15:04 MST"

// certificate explains why the server's certificate is not trusted.
func certificate(err error) (Fault, bool) {
	var stranger x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &stranger):
		return Fault{Options, "no trusted authority signed its certificate; trust its authority " +
			"with --ca FILE, or any certificate with -k", nil}, true
	case errors.As(err, &name):
		names := name.Certificate.DNSNames
		for _, ip := range name.Certificate.IPAddresses {
			names = append(names, ip.String())
		}
		if len(names) == 0 {
			return Fault{Options, fmt.Sprintf("the certificate has no subject alternative name, "+
				"and clients ignore its common name %q; issue one that names %s, or accept any "+
				"certificate with -k", name.Certificate.Subject.CommonName, name.Host), nil}, true
		}
		const most = 4
		return Fault{Options, fmt.Sprintf("the certificate is for %s, not for %s; set the server "+
			"name with -H 'Host: NAME', or accept any certificate with -k",
			strings.Join(names[:min(len(names), most)], ", "), name.Host), nil}, true
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return Fault{Options, fmt.Sprintf("the certificate is valid from %s to %s; renew it, "+
			"check this machine's clock, or accept any certificate with -k",
			invalid.Cert.NotBefore.UTC().Format(minute),
			invalid.Cert.NotAfter.UTC().Format(minute)), nil}, true
	case errors.As(err, &invalid):
		return Fault{Options, invalid.Error() + "; change the certificate, or accept any with -k",
			nil}, true
	}
	return Fault{}, false
}

// Handshake is Explain for an error of a TLS handshake. Unless the service is absent, an error that
// no table has is one of TLS.
func Handshake(err error, unanswered bool) error {
	if record, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		text := "the port does not speak TLS; use http://, or the port that does"
		if strings.HasPrefix(string(record.RecordHeader[:]), "HTTP") {
			text = "the port speaks plain HTTP; use http://"
		}
		return &Fault{Options, text, err}
	}
	err = Explain(err, unanswered)
	var known *Fault
	if errors.As(err, &known) || errors.Is(err, ErrNone) {
		return err
	}
	for _, gone := range []error{syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ETIMEDOUT,
		syscall.EPIPE, io.EOF, io.ErrUnexpectedEOF, os.ErrDeadlineExceeded, context.Canceled,
		context.DeadlineExceeded} {
		if errors.Is(err, gone) {
			return err
		}
	}
	return &Fault{Service, err.Error() + "; check the TLS configuration of the server", err}
}

// Certify makes a TLS configuration without a certificate of the client report that the server
// asked for one.
func Certify(c *tls.Config) (unanswered *atomic.Bool) {
	unanswered = &atomic.Bool{}
	if c.GetClientCertificate == nil && len(c.Certificates) == 0 {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			unanswered.Store(true)
			return &tls.Certificate{}, nil // sends none, as without this function
		}
	}
	return unanswered
}
