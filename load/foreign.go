package load

import (
	"bytes"
	"fmt"

	"prony.example/load/engine/http1"
	"prony.example/load/engine/socket"
)

// A load can reach a port that speaks another protocol, or that wants a client certificate. Servers
// say so in bytes that are no response, or in the body of a response with status 400.

// foreign returns why bytes that are no response of HTTP/1.x have come; subject says what they are.
func foreign(b []byte, subject string) reason {
	const settings = "\x04\x00\x00\x00\x00\x00" // type, flags and stream of a SETTINGS frame
	switch {
	case len(b) >= 2 && (b[0] == 0x15 || b[0] == 0x16) && b[1] == 3: // alert or handshake
		return reason{subject + ": the port speaks TLS; use https://", socket.Options}
	case len(b) >= 9 && string(b[3:9]) == settings:
		return reason{subject + ": the port speaks HTTP/2; use h2c://", socket.Options}
	}
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return because(fmt.Sprintf("%s: it begins with %.40q", subject, bytes.TrimSpace(line)))
}

// unreadable returns why the response of connection c cannot be read from b on.
func (c *conn) unreadable(b []byte, err error) reason {
	switch {
	case err != http1.ErrHead:
	case c.answers == 0:
		return foreign(b, err.Error())
	case c.route.headOnly:
		return because(err.Error() + "; it may be bytes after a response to HEAD")
	}
	return because(err.Error())
}

// Phrases of nginx, Go, Apache httpd and Tomcat in responses with status 400.
var misled = []struct{ phrase, advice string }{
	{"HTTP request was sent to HTTPS port", "the port speaks TLS; use https://"},
	{"HTTP request to an HTTPS server", "the port speaks TLS; use https://"},
	{"speaking plain HTTP to an SSL-enabled server port", "the port speaks TLS; use https://"},
	{"combination of host and port requires TLS", "the port speaks TLS; use https://"},
	{"No required SSL certificate was sent", socket.NoCertificate},
	{"SSL certificate error", socket.CertificateRefused},
}

// unlike describes a response with another status than the expected one.
func (c *conn) unlike() reason {
	switch {
	case c.resp.Status >= CallStatus && c.resp.Status <= LastCallStatus:
		return because(fmt.Sprintf("gRPC status %d: %.200s", c.resp.Status-CallStatus, c.retained))
	case c.resp.Status == 400:
		for _, m := range misled {
			if bytes.Contains(c.retained, []byte(m.phrase)) {
				return reason{"status 400: " + m.advice, socket.Options}
			}
		}
	}
	return because(fmt.Sprintf("status %d, want %d", c.resp.Status, c.route.status))
}
