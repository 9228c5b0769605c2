package nethttp

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
)

// asked is a parsed request of the generator. The text comes from the generator, so no other form
// of HTTP occurs.
type asked struct {
	method, path string
	header       http.Header
	host         string
	body         []byte
}

// understand parses a request.
func understand(b []byte) (asked, error) {
	head, body, ok := bytes.Cut(b, []byte("\r\n\r\n"))
	if !ok {
		return asked{}, fmt.Errorf("the request has no end of its head")
	}
	lines := strings.Split(string(head), "\r\n")
	words := strings.Fields(lines[0])
	if len(words) != 3 {
		return asked{}, fmt.Errorf("%q is not a request line", lines[0])
	}
	a := asked{method: words[0], path: words[1], header: http.Header{}, body: body}
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		if strings.EqualFold(name, "Host") {
			a.host = value
			continue
		}
		if !strings.EqualFold(name, "Content-Length") && !strings.EqualFold(name, "Connection") {
			a.header.Add(name, value)
		}
	}
	return a, nil
}

// answerText returns the head of a response in HTTP/1.1.
func answerText(status int, header http.Header, length int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	for name, values := range header {
		if name == "Content-Length" || name == "Transfer-Encoding" || name == "Connection" {
			continue
		}
		for _, v := range values {
			if !strings.ContainsAny(v, "\r\n") {
				fmt.Fprintf(&b, "%s: %s\r\n", name, v)
			}
		}
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n", length)
	return b.Bytes()
}
