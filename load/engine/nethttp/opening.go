package nethttp

import (
	"crypto/sha1" // RFC 6455 requires it, not for security
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"prony.example/load/engine/socket"
)

// upgrade checks the response to the opening request of a WebSocket before the library does. The
// library would wait up to three seconds for a body behind a response that it refuses.
type upgrade struct{ http.RoundTripper }

// RoundTrip returns a *socket.Fault for a response that breaks the protocol (RFC 6455, section
// 4.1).
func (u upgrade) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := u.RoundTripper.RoundTrip(req)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		return res, err
	}
	if why := violation(req.Header, res.Header); why != "" {
		_ = res.Body.Close()
		return nil, &socket.Fault{Party: socket.Service, Text: "the server's response to the " +
			"opening request breaks the WebSocket protocol: " + why + "; check the service"}
	}
	return res, nil
}

// violation returns what is wrong in the fields of a response to an opening request, or "".
func violation(offer, answer http.Header) string {
	accept := sha1.Sum([]byte(offer.Get("Sec-WebSocket-Key") +
		"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	proto := answer.Get("Sec-WebSocket-Protocol")
	switch {
	case !hasWord(answer["Connection"], "upgrade"):
		return "Connection does not contain Upgrade"
	case !hasWord(answer["Upgrade"], "websocket"):
		return "Upgrade does not contain websocket"
	case answer.Get("Sec-WebSocket-Accept") != base64.StdEncoding.EncodeToString(accept[:]):
		return fmt.Sprintf("Sec-WebSocket-Accept %q does not follow from the key",
			answer.Get("Sec-WebSocket-Accept"))
	case proto != "" && !hasWord(offer["Sec-Websocket-Protocol"], proto):
		return fmt.Sprintf("it selects the subprotocol %q, which was not offered", proto)
	case len(answer["Sec-Websocket-Extensions"]) > 0:
		return fmt.Sprintf("it selects the extension %q, which Prony does not support",
			answer.Get("Sec-WebSocket-Extensions"))
	}
	return ""
}

// hasWord reports whether the lists of a header field contain a word, without regard to case.
func hasWord(lists []string, word string) bool {
	return slices.ContainsFunc(strings.Split(strings.Join(lists, ","), ","), func(s string) bool {
		return strings.EqualFold(strings.TrimSpace(s), word)
	})
}
