package counters

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// postgres is a counter of a PostgreSQL server, over one connection: a new connection during a
// window would cost the server a process. It implements the part of the protocol that a single
// query needs (PostgreSQL's manual, "Frontend/Backend Protocol", version 3.0).
type postgres struct {
	url        *url.URL
	statements bool
	conn       net.Conn
}

const (
	// transactions are counted when they end. A server process updates the shared statistics once a
	// second at most (PGSTAT_MIN_INTERVAL), so the count may be a second late; a transaction that
	// touches no table is added with the next one that does.
	transactions = "SELECT xact_commit + xact_rollback FROM pg_stat_database " +
		"WHERE datname = current_database()"
	// statements are counted at once, if the extension is loaded and created.
	statements = "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements s " +
		"JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = current_database()"

	behind      = time.Second
	messageMost = 1 << 20 // bytes of one message
	roundsMost  = 1 << 20 // of a password's hash: more would take this process too long
)

func (p *postgres) What() string {
	if p.statements {
		return "statements"
	}
	return "transactions"
}

func (p *postgres) Late() time.Duration {
	if p.statements {
		return 0
	}
	return behind
}

func (p *postgres) Close() {
	if p.conn != nil {
		// The connection ends in any case; after 'X' the server logs nothing.
		_, _ = p.conn.Write(message('X'))
		_ = p.conn.Close()
		p.conn = nil
	}
}

// Read implements Counter.
func (p *postgres) Read(ctx context.Context) (n float64, err error) {
	query := transactions
	if p.statements {
		query = statements
	}
	text, err := p.query(ctx, query)
	if err == nil {
		n, err = strconv.ParseFloat(text, 64)
	}
	if err != nil {
		p.Close()
		return 0, fmt.Errorf("read the %s of the PostgreSQL at %s: %w", p.What(), p.url.Host, err)
	}
	return n, nil
}

// query returns the first value of the server's answer.
func (p *postgres) query(ctx context.Context, query string) (string, error) {
	if p.conn == nil {
		if err := p.connect(ctx); err != nil {
			return "", err
		}
	}
	if err := p.until(ctx); err != nil {
		return "", err
	}
	if _, err := p.conn.Write(message('Q', query, "\x00")); err != nil {
		return "", err
	}
	return p.row()
}

func (p *postgres) until(ctx context.Context) error {
	end, _ := ctx.Deadline() // zero time: no limit
	return p.conn.SetDeadline(end)
}

func (p *postgres) connect(ctx context.Context) (err error) {
	var d net.Dialer
	p.conn, err = d.DialContext(ctx, "tcp", net.JoinHostPort(p.url.Hostname(),
		cmp.Or(p.url.Port(), "5432")))
	if err != nil {
		return err
	}
	if err := p.until(ctx); err != nil {
		return err
	}
	user := p.url.User.Username()
	start := "\x00\x03\x00\x00user\x00" + user + "\x00database\x00" +
		cmp.Or(strings.TrimPrefix(p.url.Path, "/"), user) + "\x00application_name\x00prony\x00\x00"
	if _, err := p.conn.Write(message(0, start)); err != nil {
		return err
	}
	if err := p.prove(); err != nil {
		return err
	}
	_, err = p.row() // the server's settings, until it is ready
	return err
}

// row reads until the server is ready for the next query, and returns the first value.
func (p *postgres) row() (value string, err error) {
	for {
		kind, body, err := p.next()
		switch {
		case err != nil:
			return "", err
		case kind == 'Z':
			return value, nil
		case kind == 'D' && len(body) >= 6:
			value = string(body[6:]) // after the number of columns and the length of the first
		}
	}
}

// next reads the next message. An error message of the server becomes an error.
func (p *postgres) next() (kind byte, body []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(p.conn, head[:]); err != nil {
		return 0, nil, err
	}
	n := int(binary.BigEndian.Uint32(head[1:])) - 4
	if n < 0 || n > messageMost {
		return 0, nil, errors.New("the server at this address is not PostgreSQL")
	}
	body = make([]byte, n)
	if _, err := io.ReadFull(p.conn, body); err != nil {
		return 0, nil, err
	}
	if head[0] == 'E' {
		for field := range strings.SplitSeq(string(body), "\x00") {
			if text, ok := strings.CutPrefix(field, "M"); ok {
				return 0, nil, errors.New(text)
			}
		}
		return 0, nil, errors.New("the server refused the connection without a reason")
	}
	return head[0], body, nil
}

// message encodes a message; kind 0: the first one, which has no kind.
func message(kind byte, parts ...string) []byte {
	body := strings.Join(parts, "")
	var out []byte
	if kind != 0 {
		out = append(out, kind)
	}
	out = binary.BigEndian.AppendUint32(out, uint32(len(body)+4))
	return append(out, body...)
}

// Authentication requests of the server.
const (
	welcome      = 0
	wantsPlain   = 3
	wantsSASL    = 10
	saslMore     = 11
	saslEnd      = 12
	scramMethod  = "SCRAM-SHA-256"
	scramBinding = "n,," // no channel binding
)

// prove authenticates in the way that the server requests: none, by password, or by SCRAM-SHA-256
// (RFC 5802, RFC 7677), its default since version 14.
func (p *postgres) prove() error {
	password, _ := p.url.User.Password()
	var s scram
	for {
		kind, body, err := p.next()
		if err != nil {
			return err
		}
		if kind != 'R' || len(body) < 4 {
			return errors.New("the server at this address is not PostgreSQL")
		}
		var answer string
		switch way, tail := binary.BigEndian.Uint32(body), string(body[4:]); way {
		case welcome:
			return nil
		case wantsPlain:
			answer = password + "\x00"
		case wantsSASL:
			s = scram{password: password, nonce: rand.Text()}
			first := scramBinding + s.first()
			answer = scramMethod + "\x00" +
				string(binary.BigEndian.AppendUint32(nil, uint32(len(first)))) + first
		case saslMore:
			if answer, err = s.final(tail); err != nil {
				return err
			}
		case saslEnd:
			continue
		default:
			return fmt.Errorf("the server requires authentication method %d; supported methods "+
				"are trust, password and scram-sha-256", way)
		}
		if _, err := p.conn.Write(message('p', answer)); err != nil {
			return err
		}
	}
}

// scram is the client's side of RFC 5802.
type scram struct{ password, nonce string }

func (s *scram) first() string { return "n=,r=" + s.nonce }

// final returns the proof for the server's nonce, salt and rounds.
func (s *scram) final(server string) (string, error) {
	texts := map[string]string{}
	for part := range strings.SplitSeq(server, ",") {
		name, value, _ := strings.Cut(part, "=")
		texts[name] = value
	}
	salt, err := base64.StdEncoding.DecodeString(texts["s"])
	rounds, failed := strconv.Atoi(texts["i"])
	if err != nil || failed != nil || rounds < 1 || rounds > roundsMost ||
		!strings.HasPrefix(texts["r"], s.nonce) {
		return "", errors.New("the server does not support SCRAM-SHA-256")
	}
	salted, err := pbkdf2.Key(sha256.New, s.password, salt, rounds, sha256.Size)
	if err != nil {
		return "", err
	}
	sign := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		_, _ = io.WriteString(h, text) // a hash never fails
		return h.Sum(nil)
	}
	key := sign(salted, "Client Key")
	stored := sha256.Sum256(key)
	plain := "c=" + base64.StdEncoding.EncodeToString([]byte(scramBinding)) + ",r=" + texts["r"]
	for i, b := range sign(stored[:], s.first()+","+server+","+plain) {
		key[i] ^= b
	}
	return plain + ",p=" + base64.StdEncoding.EncodeToString(key), nil
}
