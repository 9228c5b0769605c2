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

// Protocols are what a service may speak instead of HTTP/1.1 in the clear, as suites name them.
var Protocols = []string{"https", "h2", "h2c", "h3", "grpc", "grpcs"}

// ReadyCall is what a service that speaks gRPC is asked whether it is ready (gRPC's health checking
// protocol, version 1).
const ReadyCall = "/grpc.health.v1.Health/Check"

// isCall says whether what is asked in a protocol are calls of gRPC.
func isCall(protocol string) bool { return strings.HasPrefix(protocol, "grpc") }

// ReadyIn is the path that answers once requests of the protocol can be served.
func (s *Service) ReadyIn(protocol string) string {
	if isCall(protocol) {
		return ReadyCall
	}
	return s.Run.Ready
}

// Speaking is the service's build that speaks the protocol; nil: none does.
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

// Alone says whether this is a build for protocols alone, of which no target is.
func (s *Service) Alone() bool { return s.Other != "" && len(s.Protocols) > 0 }

// Alike are the service's builds for protocols alone.
func (s *Service) Alike() []*Service { return s.spoken }

// Narrow is the service as if it had but one of its targets, in its builds for protocols, too.
func (s *Service) Narrow(t Target) *Service {
	narrow := *s
	narrow.Targets, narrow.spoken = []Target{t}, nil
	for _, peer := range s.spoken { // whose targets are the service's
		narrow.spoken = append(narrow.spoken, peer.Narrow(t))
	}
	return &narrow
}

// Spoken are all protocols that the service's targets speak, in the order of Protocols.
func (s *Service) Spoken() (out []string) {
	for _, protocol := range Protocols {
		if s.Speaking(protocol) != nil {
			out = append(out, protocol)
		}
	}
	return out
}

// checkProtocols wants protocols that there are, each spoken by one build.
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

// Certificate is one for a service, and its key, in files that only this user may read; it is its
// own authority. Whoever made it removes it.
type Certificate struct {
	Dir string // holds both, and nothing else
	PEM string // what a client trusts
}

// What a certificate names: the address of services that share this machine's network, and what
// others, each with an address of its own, are asked by.
const (
	Loopback = "127.0.0.1"
	CertName = "localhost"
)

// Files of a certificate's folder.
const (
	certFile = "cert.pem"
	keyFile  = "key.pem"
)

// NewCertificate makes one in a new folder, for this machine, for a day.
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
	// Whoever has the key is the service for a day: the folder lets nobody else in.
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

// Open lets every user read it, for one that has no name here; who gets to the folder is decided by
// those that it is in.
func (c Certificate) Open() error {
	err := os.Chmod(c.Dir, 0o755)
	for _, name := range []string{certFile, keyFile} {
		err = errors.Join(err, os.Chmod(filepath.Join(c.Dir, name), 0o644))
	}
	return err
}

// Remove takes its files away.
func (c Certificate) Remove() error {
	if c.Dir == "" {
		return nil
	}
	return os.RemoveAll(c.Dir)
}

// Env is what tells a target what to speak, and with which certificate.
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
