package nethttp_test

import (
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"prony.example/internal/dev/testsets"
	"prony.example/load/engine/nethttp"
)

// A response that breaks the protocol is named at once: the library waits three seconds for a body
// behind it, longer than a load waits for a connection.
func TestBrokenOpeningResponses(t *testing.T) {
	testsets.Live(t)
	const right = "Upgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n"
	accept := "Sec-WebSocket-Accept: %s\r\n"
	for _, c := range []struct{ fields, want string }{
		{right + "Sec-WebSocket-Accept: AAAA\r\n", `Sec-WebSocket-Accept "AAAA" does not follow`},
		{"Connection: Upgrade\r\n" + accept, "Upgrade does not contain websocket"},
		{"Upgrade: websocket\r\n" + accept, "Connection does not contain Upgrade"},
		{right + accept + "Sec-WebSocket-Protocol: chat\r\n", `the subprotocol "chat"`},
		{right + accept + "Sec-WebSocket-Extensions: permessage-deflate\r\n",
			`the extension "permessage-deflate"`},
		{right + accept, ""},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") +
				"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\n", strings.ReplaceAll(c.fields,
				"%s", base64.StdEncoding.EncodeToString(sum[:])), "\r\n")
			t.Cleanup(func() { _ = conn.Close() }) // it stays open, as a server's would
		}))
		defer server.Close()
		err := nethttp.Transport{Config: nethttp.Config{Protocol: nethttp.WS, Network: "tcp",
			Address: server.Listener.Addr().String(), Host: "a.b", Path: "/"}}.Connect(t.Context())
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%q: %v", c.fields, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%q: error %v, want %q", c.fields, err, c.want)
		case err != nil && strings.Contains(err.Error(), "dial"):
			t.Errorf("%v: has the library's words", err)
		}
	}
}
