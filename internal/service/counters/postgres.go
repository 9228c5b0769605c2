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

// postgres is a counter of a PostgreSQL, over one connection: to connect anew in a window would
// cost the server a process. Its messages are those of PostgreSQL's manual, "Frontend/Backend
// Protocol", version 3.0, of which it speaks what a single query takes.
type postgres struct {
	url        *url.URL
	statements bool
	conn       net.Conn
}

const (
	// transactions are counted when they end. A server process tells the shared statistics of them
	// once a second at most (PGSTAT_MIN_INTERVAL), so that each may be a second behind; of one that
	// touches no table it tells with the next that does.
	transactions = "SELECT xact_commit + xact_rollback FROM pg_stat_database " +
		"WHERE datname = current_database()"
	// statements are counted at once, where the extension is loaded and created.
	statements = "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements s " +
		"JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = current_database()"

	behind      = time.Second
	messageMost = 1 << 20 // bytes of one message
	roundsMost  = 1 << 20 // of a password's hash: more would keep this process busy
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
		// It is gone either way; 'X' lets the server end without a line in its log.
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

// query gives the first value that the server answers.
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
	end, _ := ctx.Deadline() // the zero time: for ever
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
	_, err = p.row() // what the server tells of itself, until it is ready
	return err
}

// row reads up to the server's being ready for the next query, and gives the first value.
func (p *postgres) row() (value string, err error) {
	for {
		kind, body, err := p.next()
		switch {
		case err != nil:
			return "", err
		case kind == 'Z':
			return value, nil
		case kind == 'D' && len(body) >= 6:
			value = string(body[6:]) // after the number of columns, and the length of the first
		}
	}
}

// next is the next message; what the server complains of is an error.
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

// message is one of a kind; 0: the first, which has none.
func message(kind byte, parts ...string) []byte {
	body := strings.Join(parts, "")
	var out []byte
	if kind != 0 {
		out = append(out, kind)
	}
	out = binary.BigEndian.AppendUint32(out, uint32(len(body)+4))
	return append(out, body...)
}

// Answers of the server to who we are.
const (
	welcome      = 0
	wantsPlain   = 3
	wantsSASL    = 10
	saslMore     = 11
	saslEnd      = 12
	scramMethod  = "SCRAM-SHA-256"
	scramBinding = "n,," // no channel binding
)

// prove shows the server who we are, in the way that it asks for: not at all, by password, or by
// SCRAM-SHA-256 (RFC 5802, RFC 7677), which has been its default since version 14.
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

// scram is a client's side of RFC 5802.
type scram struct{ password, nonce string }

func (s *scram) first() string { return "n=,r=" + s.nonce }

// final is the proof, once the server has said its part of the nonce, the salt and the rounds.
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
