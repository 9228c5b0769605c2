package nethttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"unicode/utf8"

	"github.com/coder/websocket"

	"prony.example/load/engine"
	"prony.example/load/engine/socket"
)

// webSocket is a WebSocket connection. The request's body is sent as one message, and the next
// message received is its response. The opening request's path and headers come from the engine's
// Config.
type webSocket struct {
	e     *Engine
	conn  *websocket.Conn
	wire  *frames
	idle  *idle        // the connection below wire
	inbox chan arrival // closed after the last one
}

// arrival is a message, or the reason why no further one comes.
type arrival struct {
	body
	let func() // releases the body's bytes
	err error
}

func (c *webSocket) open(ctx context.Context) error {
	transport := &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := c.e.dial(ctx, "http/1.1")
			if err != nil {
				return nil, err
			}
			c.wire, c.idle = &frames{Conn: conn}, idleBelow(conn)
			return c.wire, nil
		}}
	client := &http.Client{Transport: upgrade{transport}, CheckRedirect: func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	}}
	header := c.e.config.Header
	// The dialer makes the TLS handshake; the library gets a plain connection.
	conn, res, err := websocket.Dial(ctx, "ws://"+c.e.config.Host+c.e.config.Path,
		&websocket.DialOptions{HTTPClient: client, HTTPHeader: header, Host: header.Get("Host"),
			Subprotocols: header.Values("Sec-WebSocket-Protocol")})
	switch {
	case err != nil && res != nil && res.StatusCode != http.StatusSwitchingProtocols:
		return refusal(res.StatusCode)
	case err != nil:
		if sent, ok := errors.AsType[*url.Error](err); ok {
			// Without the library's words and Prony's own URL.
			return sent.Err
		}
		return err
	}
	conn.SetReadLimit(-1) // hold bounds messages
	c.conn, c.inbox = conn, make(chan arrival)
	go c.read(ctx)
	return nil
}

// refusal explains the status of a response to the opening request.
func refusal(status int) error {
	f := &socket.Fault{Party: socket.Options, Text: fmt.Sprintf("the server answers the opening "+
		"request of the WebSocket with status %d; check path and header fields", status)}
	if status >= http.StatusInternalServerError {
		f.Party, f.Text = socket.Service, f.Text+", and the server's log"
	}
	return f
}

// read passes on messages. It also reads while no request is under way, because pings want answers,
// and a server can end an idle connection.
func (c *webSocket) read(ctx context.Context) {
	defer close(c.inbox)
	for {
		a := arrival{let: func() {}}
		kind, r, err := c.conn.Reader(ctx)
		if a.err = err; err == nil {
			a.body, a.let, a.err = c.e.hold(r)
		}
		if a.err == nil && kind == websocket.MessageText && !a.isText() {
			a.err = errNotText
		}
		if c.inbox <- a; a.err != nil {
			return
		}
	}
}

var errNotText = errors.New("the server sent a text message that is not UTF-8 " +
	"(RFC 6455, section 8.1)")

func (b body) isText() bool {
	if len(b.pieces) == 1 {
		return utf8.Valid(b.pieces[0])
	}
	return utf8.Valid(bytes.Join(b.pieces, nil)) // a piece may end within a character
}

// checkIdle returns what has come since the last response: a message, which would be taken for the
// next response, or the end of the connection.
func (c *webSocket) checkIdle() error {
	for {
		select {
		case a := <-c.inbox:
			a.let()
			switch {
			case a.err == nil:
				return engine.Unsolicited(bytes.Join(a.pieces, nil))
			case errors.Is(a.err, io.EOF) || websocket.CloseStatus(a.err) >= 0:
				return engine.Untaken(string(ended) + ": " + a.err.Error())
			}
			return a.err
		default:
		}
		if c.wire.waits.Load() && !c.idle.pending() {
			return nil
		}
		runtime.Gosched() // the reader has bytes
	}
}

func (c *webSocket) exchange(ctx context.Context, b []byte, s *sink) (engine.Op, error) {
	a, err := understand(b)
	if err != nil {
		return engine.Writing, err
	}
	if err := c.checkIdle(); err != nil {
		return engine.Writing, err
	}
	if err := c.conn.Write(ctx, websocket.MessageText, a.body); err != nil {
		return engine.Writing, c.orClosed(err)
	}
	message := <-c.inbox
	defer message.let()
	if message.err != nil {
		return engine.Reading, inOrder(message.err)
	}
	s.answer(message.atNs, answerText(http.StatusOK, nil, message.length))
	message.answer(s)
	return 0, nil
}

// orClosed returns the close frame that made writing fail, or err. After a failed write, the
// library closes the connection, so reading ends.
func (c *webSocket) orClosed(err error) error {
	for a := range c.inbox {
		if a.let(); a.err != nil && websocket.CloseStatus(a.err) >= 0 {
			return inOrder(a.err)
		}
	}
	return err
}

// inOrder names the status of a close frame. A close that ends the connection in order becomes
// engine.Ended; other statuses report a failure of the server or of the message, which remains an
// error (RFC 6455, section 7.4.1; IANA's registry of WebSocket close codes).
func inOrder(err error) error {
	frame, is := errors.AsType[websocket.CloseError](err)
	if !is {
		return err
	}
	text := fmt.Sprintf("the server closed the WebSocket with status %d", frame.Code)
	if frame.Reason != "" {
		text += " (" + frame.Reason + ")"
	}
	switch frame.Code {
	case websocket.StatusNormalClosure, websocket.StatusGoingAway, websocket.StatusNoStatusRcvd,
		websocket.StatusServiceRestart:
		return engine.Ended(text)
	}
	return errors.New(text)
}

func (c *webSocket) close() {
	if c.conn != nil {
		// The load is over or the connection broken, so a closing handshake would only take time.
		_ = c.conn.CloseNow()
		for a := range c.inbox {
			a.let()
		}
	}
}
