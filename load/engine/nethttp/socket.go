package nethttp

import (
	"context"
	"net"
	"net/http"

	"github.com/coder/websocket"

	"prony.example/load/engine"
)

// socket is a WebSocket: the request's body goes out as one message, and the next one that comes is
// its answer. The request's path and headers are those of the opening, from the engine's Config.
type socket struct {
	e    *Engine
	conn *websocket.Conn
}

func (c *socket) open(ctx context.Context) error {
	transport := &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := c.e.dial(ctx, "http/1.1")
			if err != nil {
				return nil, err
			}
			return &frames{Conn: conn}, nil
		}}
	// The dialer has TLS done; to the library it is a plain connection.
	conn, _, err := websocket.Dial(ctx, "ws://"+c.e.config.Host+c.e.config.Path,
		&websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		return err
	}
	conn.SetReadLimit(-1) // hold has its own
	c.conn = conn
	return nil
}

func (c *socket) exchange(ctx context.Context, b []byte, s *sink) (engine.Op, error) {
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

func (c *socket) close() {
	if c.conn != nil {
		// The load is over or the connection broken; a farewell would only take time.
		_ = c.conn.CloseNow()
	}
}
