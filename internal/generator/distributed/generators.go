// Package distributed lets several of them offer one load: processes of this machine or of others,
// each a part of one seeded schedule. A lab gathers them and has the result.
//
//	lab                                              generator i of n
//	listens ◄─────────────── hello: version, token, index ── dials, pins the lab's certificate
//	refuses, or ── order: the load, its part ──────────────► connects to the service
//	exchanges clocks ◄──────────────────────── ready ──
//	agrees the beginning ── start, by its clock ───────────► arrivals i, i+n, i+2n, …
//	adds up, shows, watches ◄── pieces: a second's counters, histograms, intervals
//	exchanges clocks again ◄───────────────── ended ──
//	hears one after another ── word ───────────────────────►
//	judges it alone, adds ◄─── books: counters, histograms ──
//
// What is added are counters and the bins of histograms (load.Ledger), so that the sum is what one
// process with the same samples has. A generator that begins late, dies or falls silent makes the
// load INVALID with its name; the others go on, and what it had not told by then is missing.
//
// The lab believes nothing: a message has a bound by its kind, is looked through before anything of
// it is kept, and is answered by the end of the connection where it makes no sense. One long
// message is held at a time. So its memory is bounded whatever generators send.
//
// Non-goals: it starts no process and knows no cluster; who has the key may generate. No generator
// takes another's part: a load with a hole is no load.
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

// Key is what a generator must have to be one: it is told by the environment or on a pipe, never on
// a command line, which every user of a machine can read.
type Key struct {
	Token       string // who has it may generate
	Certificate string // SHA-256 of the lab's, in hexadecimal: whom the generator believes
}

// String is the key as one word.
func (k Key) String() string { return k.Token + ":" + k.Certificate }

// ParseKey reads one.
func ParseKey(text string) (k Key, err error) {
	const token, sum = 2 * tokenBytes, 2 * sha256.Size
	if len(text) != token+1+sum || text[token] != ':' {
		return k, errors.New("the key is invalid: it must be the token and the certificate hash " +
			"that the coordinator has written")
	}
	return Key{text[:token], text[token+1:]}, nil
}

const tokenBytes = 32

// Identity is who a lab is: what its generators have, and what they know it by.
type Identity struct {
	key         Key
	certificate tls.Certificate
}

// ParseIdentity reads one that was made before the lab, for generators that somebody starts without
// having heard of it, such as a cluster: a token of 64 characters, a certificate that is signed by
// itself, and its secret key, both in PEM. Generators have Key alone, which lets none of them pass
// for the lab.
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

// certify makes an identity for one run.
func certify() (id Identity, err error) {
	token := make([]byte, tokenBytes)
	if _, err := rand.Read(token); err != nil {
		return id, err
	}
	// Whoever dials compares the hash and not the date: its clock may be off.
	id.certificate, err = selfcert.New(365*24*time.Hour, name)
	if err != nil {
		return Identity{}, err
	}
	id.key = Key{hex.EncodeToString(token), sumOf(id.certificate.Certificate[0])}
	return id, nil
}

// name is what the lab's certificate calls it; nobody asks DNS for it.
const name = "prony"

func sumOf(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// trusting is a client's configuration that takes one certificate and no other.
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

// same compares two secrets in a time that does not tell where they differ.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// How long things may take.
const (
	greetIn = 10 * time.Second // from a connection to who it is
	replyIn = 10 * time.Second // to a question, and for a message to be written
	wordIn  = time.Minute      // for the books
	every   = time.Second      // pieces
	// Everything that is late by so much in the beginning makes the load another one: as long as a
	// load thread may stand still.
	lateMost = 100 * time.Millisecond
)

// Limits are how patient a lab is. The zero value is the usual patience.
type Limits struct {
	Gather time.Duration // until all generators are there; 0: 30 s
	Ready  time.Duration // and have connected to the service; 0: 2 min
	Silent time.Duration // between two pieces; 0: 5 s
	End    time.Duration // beyond window, drain and timeout; 0: 15 s
}

func (l *Limits) fill() {
	l.Gather = cmp.Or(l.Gather, 30*time.Second)
	l.Ready = cmp.Or(l.Ready, 2*time.Minute)
	l.Silent = cmp.Or(l.Silent, 5*time.Second)
	l.End = cmp.Or(l.End, 15*time.Second)
}

// who is a generator in words.
func who(index int, name string) string { return fmt.Sprintf("generator %d (%s)", index, name) }
