package service

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"prony.example/internal/base/selfcert"
)

// Protocols are the names in suites of protocols that a service may use instead of plain HTTP/1.1.
var Protocols = []string{"https", "h2", "h2c", "h3", "grpc", "grpcs"}

// ReadyCall is the readiness call of a gRPC service (gRPC's health checking protocol, version 1).
const ReadyCall = "/grpc.health.v1.Health/Check"

// isCall reports whether requests of a protocol are calls of gRPC.
func isCall(protocol string) bool { return strings.HasPrefix(protocol, "grpc") }

// ReadyIn returns the path that answers 200 when the service can serve requests of the protocol.
func (s *Service) ReadyIn(protocol string) string {
	if isCall(protocol) {
		return ReadyCall
	}
	return s.Run.Ready
}

// Speaking returns the service's build for the protocol; nil: there is none.
func (s *Service) Speaking(protocol string) *Service {
	if protocol == "" || slices.Contains(s.Protocols, protocol) {
		return s
	}
	for _, peer := range s.spoken {
		if slices.Contains(peer.Protocols, protocol) {
			return peer
		}
	}
	return nil
}

// Alone reports whether this build exists only for protocols and has no target of its own.
func (s *Service) Alone() bool { return s.Other != "" && len(s.Protocols) > 0 }

// ProtocolBuilds returns the service's builds that exist only for protocols.
func (s *Service) ProtocolBuilds() []*Service { return s.spoken }

// Narrow returns the service with only this target, also in its builds for protocols.
func (s *Service) Narrow(t Target) *Service {
	narrow := *s
	narrow.Targets, narrow.spoken = []Target{t}, nil
	for _, peer := range s.spoken { // with the same targets
		narrow.spoken = append(narrow.spoken, peer.Narrow(t))
	}
	return &narrow
}

// Spoken returns all protocols of the service's targets, in the order of Protocols.
func (s *Service) Spoken() (out []string) {
	for _, protocol := range Protocols {
		if s.Speaking(protocol) != nil {
			out = append(out, protocol)
		}
	}
	return out
}

// checkProtocols checks that the protocols exist and that one build implements each.
func (d document) checkProtocols(s *Service) {
	visited := map[string]bool{}
	check := func(at string, protocols []string) {
		for i, name := range protocols {
			at := fmt.Sprintf("%s.protocols[%d]", at, i)
			d.known(at, "protocol", name, Protocols)
			if visited[name] {
				d.Wrong(at, "", "protocol %q is listed twice", name)
			}
			visited[name] = true
		}
	}
	check("$", s.Protocols)
	for i, b := range s.Builds {
		check(fmt.Sprintf("$.builds[%d]", i), b.Protocols)
	}
	if len(visited) > 0 && len(s.Run.Processes) > 0 {
		d.Wrong("$.protocols", "remove the key", "a system of several processes supports only "+
			"HTTP/1.1")
	}
}

// Certificate is a self-signed certificate of a service with its key, in files that only this user
// may read. The caller of NewCertificate removes it.
type Certificate struct {
	Dir string // holds only both files
	PEM string // trusted by clients
}

// Names in a certificate: the address of services in this machine's network, and the name for
// services with an address of their own.
const (
	Loopback = "127.0.0.1"
	CertName = "localhost"
)

// Files of a certificate's folder.
const (
	certFile = "cert.pem"
	keyFile  = "key.pem"
)

// NewCertificate makes a certificate for this machine in a new folder, valid for a day.
func NewCertificate(dir string) (c Certificate, err error) {
	certificate, err := selfcert.New(24*time.Hour, CertName, Loopback)
	if err != nil {
		return c, fmt.Errorf("make a certificate: %w", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		return c, fmt.Errorf("make a certificate: %w", err)
	}
	if c.Dir, err = filepath.Abs(dir); err != nil {
		return c, fmt.Errorf("make a certificate: %w", err)
	}
	text := selfcert.PEM(certificate)
	c.PEM = string(text)
	// The key identifies the service for a day, so only this user may enter the folder.
	err = os.Mkdir(c.Dir, 0o700)
	for name, block := range map[string][]byte{certFile: text,
		keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})} {
		err = errors.Join(err, os.WriteFile(filepath.Join(c.Dir, name), block, 0o600))
	}
	if err != nil {
		return c, errors.Join(fmt.Errorf("make a certificate: %w", err), c.Remove())
	}
	return c, nil
}

// Open lets every user read the files, for a service whose user is unknown here. Access to the
// folder then depends on its parent folders.
func (c Certificate) Open() error {
	err := os.Chmod(c.Dir, 0o755)
	for _, name := range []string{certFile, keyFile} {
		err = errors.Join(err, os.Chmod(filepath.Join(c.Dir, name), 0o644))
	}
	return err
}

// Remove removes the files.
func (c Certificate) Remove() error {
	if c.Dir == "" {
		return nil
	}
	return os.RemoveAll(c.Dir)
}

// Env returns the variables that select a target's protocol and certificate.
func (c Certificate) Env(protocol string) map[string]string {
	if protocol == "" {
		return nil
	}
	out := map[string]string{"PROTOCOL": protocol}
	if c.Dir != "" {
		out["TLS_CERT"] = filepath.Join(c.Dir, certFile)
		out["TLS_KEY"] = filepath.Join(c.Dir, keyFile)
	}
	return out
}
