// Command main serves HTTP by net/http and counts its requests. GET /count answers the number of
// other requests. With SHORT=1, connections end after 10 requests or 1 s without any.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// requests is the key of a connection's number of requests.
type requests struct{}

func main() {
	dir, plain, tls, h2c := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	short := os.Getenv("SHORT") == "1"
	var count atomic.Int64
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/count" {
			fmt.Fprint(w, count.Load())
			return
		}
		count.Add(1)
		if r.Context().Value(requests{}).(*atomic.Int64).Add(1) == 10 && short {
			w.Header().Set("Connection", "close") // over HTTP/2, net/http sends GOAWAY for it
		}
		io.WriteString(w, "ok")
	}), ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, requests{}, new(atomic.Int64))
	}, Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetHTTP2(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	if short {
		s.IdleTimeout = time.Second
	}
	for _, addr := range []string{plain, h2c} {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			log.Fatal(err)
		}
		go s.Serve(l)
	}
	l, err := net.Listen("tcp", tls)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(s.ServeTLS(l, dir+"/cert.pem", dir+"/key.pem"))
}
