package stack

import (
	"context"
	"net"
	"net/http"

	"github.com/coder/websocket"

	"prony/internal/clock"
	"prony/internal/load"
)

// socket is a WebSocket: the request's body goes out as one message, and the next one that comes is
// its answer. The request's path and headers are those of the opening, from the engine's Config.
type socket struct {
	e    *Engine
	conn *websocket.Conn
}

// messageMax bounds a message, in bytes.
const messageMax = 64 << 20

func (c *socket) open(ctx context.Context) error {
	transport := &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return c.e.dial(ctx, "http/1.1")
		}}
	// The dialer has TLS done; to the library it is a plain connection.
	conn, _, err := websocket.Dial(ctx, "ws://"+c.e.config.Host+c.e.config.Path,
		&websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		return err
	}
	conn.SetReadLimit(messageMax)
	c.conn = conn
	return nil
}

func (c *socket) exchange(ctx context.Context, b []byte, s *sink) (load.Op, error) {
	a, err := understand(b)
	if err != nil {
		return load.Writing, err
	}
	if err := c.conn.Write(ctx, websocket.MessageText, a.body); err != nil {
		return load.Writing, err
	}
	_, message, err := c.conn.Read(ctx)
	if err != nil {
		return load.Reading, err
	}
	at := clock.Mono()
	s.answer(at, append(answerText(http.StatusOK, nil, len(message)), message...))
	return 0, nil
}

func (c *socket) close() {
	if c.conn != nil {
		// The load is over or the connection broken; a farewell would only take time.
		_ = c.conn.CloseNow()
	}
}
