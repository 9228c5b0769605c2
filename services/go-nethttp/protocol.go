package main

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"os"
	"time"
)

// server takes requests in one protocol.
type server interface {
	// Serve returns when the server fails or is shut down.
	Serve() error
	// Shutdown waits for the requests under way, Close does not.
	Shutdown(context.Context) error
	Close() error
}

// listen makes the server of the protocol that the environment names: by net/http alone, or, where
// the build has more, by what it has.
func listen(address string, handler http.Handler) (server, error) {
	protocol := cmp.Or(os.Getenv("PROTOCOL"), "http")
	var speaks http.Protocols
	switch protocol {
	case "http", "https":
		speaks.SetHTTP1(true)
	case "h2":
		speaks.SetHTTP2(true)
	case "h2c":
		speaks.SetUnencryptedHTTP2(true)
	default:
		return listenFurther(protocol, address, handler)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return &httpServer{
		// A server without the two times keeps a silent connection for ever.
		Server: &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: 10 * time.Second,
			IdleTimeout:       2 * time.Minute,
			Protocols:         &speaks,
		},
		listener: listener,
		secure:   protocol == "https" || protocol == "h2",
	}, nil
}

type httpServer struct {
	*http.Server
	listener net.Listener
	secure   bool
}

func (s *httpServer) Serve() error {
	if s.secure {
		return s.ServeTLS(s.listener, os.Getenv("TLS_CERT"), os.Getenv("TLS_KEY"))
	}
	return s.Server.Serve(s.listener)
}
