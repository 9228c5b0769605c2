package nethttp

import (
	"context"
	"net"
	"net/http"

	"github.com/coder/websocket"

	"prony.example/load/engine"
)

// webSocket is a WebSocket connection. The request's body is sent as one message, and the next
// message received is its response. The opening request's path and headers come from the engine's
// Config.
type webSocket struct {
	e    *Engine
	conn *websocket.Conn
}

func (c *webSocket) open(ctx context.Context) error {
	transport := &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := c.e.dial(ctx, "http/1.1")
			if err != nil {
				return nil, err
			}
			return &frames{Conn: conn}, nil
		}}
	// The dialer makes the TLS handshake; the library gets a plain connection.
	conn, _, err := websocket.Dial(ctx, "ws://"+c.e.config.Host+c.e.config.Path,
		&websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		return err
	}
	conn.SetReadLimit(-1) // hold bounds messages
	c.conn = conn
	return nil
}

func (c *webSocket) exchange(ctx context.Context, b []byte, s *sink) (engine.Op, error) {
	a, err := understand(b)
	if err != nil {
		return engine.Writing, err
	}
	if err := c.conn.Write(ctx, websocket.MessageText, a.body); err != nil {
		return engine.Writing, err
	}
	_, r, err := c.conn.Reader(ctx)
	if err != nil {
		return engine.Reading, err
	}
	message, let, err := c.e.hold(r)
	defer let()
	if err != nil {
		return engine.Reading, err
	}
	s.answer(message.atNs, answerText(http.StatusOK, nil, message.length))
	message.answer(s)
	return 0, nil
}

func (c *webSocket) close() {
	if c.conn != nil {
		// The load is over or the connection broken, so a closing handshake would only take time.
		_ = c.conn.CloseNow()
	}
}
