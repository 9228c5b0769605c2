// Package distributed runs one load with several generators, processes of this machine or of
// others. Each sends a part of one seeded schedule. A lab collects them and computes the result.
//
//	lab                                              generator i of n
//	listens ◄─────────────── hello: version, token, index ── dials, pins the lab's certificate
//	refuses, or ── welcome ────────────────────────────────► waits; otherwise tries again
//	all are there: order: the load, its part ──────────────► connects to the service
//	exchanges clocks ◄──────────────────────── ready ──
//	agrees the start ────── start, by its clock ───────────► arrivals i, i+n, i+2n, …
//	adds, shows, supervises ◄── pieces: a second's counters, histograms, intervals
//	exchanges clocks again ◄───────────────── ended ──
//	permits one by one ─────── word ───────────────────────►
//	judges each alone, adds ◄─ books: counters, histograms ──
//
// The lab adds counters and bins of histograms (load.Ledger), so the sum equals the result of one
// process with the same samples. If a generator starts late, dies or falls silent, the load is
// INVALID and names it. The other generators continue; what it had not reported is missing.
//
// The lab trusts no message: each kind has a size limit, each message is checked before any of it
// is stored, and an invalid message ends the connection. Only one long message is in memory at a
// time. So the lab's memory is bounded whatever generators send. Connections without the key make
// room for others (internal/base/portguard).
//
// Non-goals: it starts no process and is independent of clusters; every holder of the key may
// generate. No generator takes over another's part, because a load with a gap is invalid.
package distributed

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"prony.example/internal/base/selfcert"
)

// Key is the secret of a load's generators. They get it from the environment or a pipe, never from
// a command line, which every user of a machine can read.
type Key struct {
	Token       string // authorizes a generator
	Certificate string // SHA-256 of the certificate that generators trust, in hexadecimal
}

// String returns the key as one word.
func (k Key) String() string { return k.Token + ":" + k.Certificate }

// ParseKey parses String's form.
func ParseKey(text string) (k Key, err error) {
	const token, sum = 2 * tokenBytes, 2 * sha256.Size
	if len(text) != token+1+sum || text[token] != ':' {
		return k, errors.New("the key is invalid: it must be the token and the certificate hash " +
			"that the coordinator has written")
	}
	return Key{text[:token], text[token+1:]}, nil
}

const tokenBytes = 32

// Identity is a lab's certificate with its secret, and the key of its generators.
type Identity struct {
	key         Key
	certificate tls.Certificate
}

// ParseIdentity returns an identity that was created before the lab, for generators that are
// started independently, for example by a cluster: from a token of 64 characters, a self-signed
// certificate, and its secret key, both in PEM. Generators have only the Key, with which they
// cannot impersonate the lab.
func ParseIdentity(token string, certificate, secret []byte) (id Identity, err error) {
	if id.certificate, err = tls.X509KeyPair(certificate, secret); err != nil {
		return Identity{}, err
	}
	if n := len(id.certificate.Certificate); n != 1 {
		return Identity{}, fmt.Errorf("the identity has %d certificates, but it must have only "+
			"the coordinator's certificate", n)
	}
	id.key, err = ParseKey(token + ":" + sumOf(id.certificate.Certificate[0]))
	if err != nil { // the token is not told
		return Identity{}, fmt.Errorf("the token has %d characters, but it must have "+
			"%d", len(token),
			2*tokenBytes)
	}
	return id, nil
}

// certify creates an identity for one run.
func certify() (id Identity, err error) {
	token := make([]byte, tokenBytes)
	if _, err := rand.Read(token); err != nil {
		return id, err
	}
	// Clients check the hash and not the date, because their clocks may be wrong.
	id.certificate, err = selfcert.New(365*24*time.Hour, name)
	if err != nil {
		return Identity{}, err
	}
	id.key = Key{hex.EncodeToString(token), sumOf(id.certificate.Certificate[0])}
	return id, nil
}

// name is the name in the lab's certificate; it is never resolved by DNS.
const name = "prony"

func sumOf(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// trusting returns a client's TLS configuration that accepts only the key's certificate.
func trusting(k Key) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: name,
		InsecureSkipVerify: true, //nolint:gosec // no authority has signed it; its hash is known
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) != 1 ||
				!same(sumOf(s.PeerCertificates[0].Raw), k.Certificate) {
				return errors.New("the program at this address is not the coordinator of this " +
					"key: its certificate differs")
			}
			return nil
		},
	}
}

// same compares two secrets in constant time.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// Time limits.
const (
	helloIn = 5 * time.Second  // from a connection to the hello message
	greetIn = 10 * time.Second // for a connection to the lab, and for its welcome message
	replyIn = 10 * time.Second // for a response, and for writing a message
	wordIn  = time.Minute      // for the books
	every   = time.Second      // between pieces
	// lateMost is the delay of the start from which on the load is invalid: as long as a load
	// thread may stall.
	lateMost = 100 * time.Millisecond
)

// Limits are a lab's time limits. The zero value has the defaults.
type Limits struct {
	Gather time.Duration // until all generators have connected; 0: 30 s
	Ready  time.Duration // until all have connected to the service; 0: 2 min
	Silent time.Duration // between two pieces; 0: 5 s
	End    time.Duration // after window, drain and timeout; 0: 15 s
}

func (l *Limits) fill() {
	l.Gather = cmp.Or(l.Gather, 30*time.Second)
	l.Ready = cmp.Or(l.Ready, 2*time.Minute)
	l.Silent = cmp.Or(l.Silent, 5*time.Second)
	l.End = cmp.Or(l.End, 15*time.Second)
}

// who describes a generator in words.
func who(index int, name string) string { return fmt.Sprintf("generator %d (%s)", index, name) }
