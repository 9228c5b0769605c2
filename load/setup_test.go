package load

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"prony.example/record"
)

// A server can send interim responses to a setup, and end each connection without a word.
func TestSetupOfClosingServers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					_, _ = io.WriteString(c, "HTTP/1.1 103 Early Hints\r\n\r\n"+
						"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") // a lost one fails
				}
			}()
		}
	}()
	ask := Request{Method: "GET", Path: "/", Want: "ok", HasWant: true}
	s := Scenario{Requests: []Request{ask}}
	s.Setup = []Request{ask, ask, ask}
	r, err := Run(context.Background(), Spec{Address: l.Addr().(*net.TCPAddr).AddrPort(),
		Model: record.Closed, Connections: 1, Requests: 1, Window: 20 * time.Second,
		Timeout: 20 * time.Second, Scenario: s})
	if err != nil || r.Answered != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}
