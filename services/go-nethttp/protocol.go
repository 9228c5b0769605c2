package main

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"os"
	"time"
)

// server serves requests in one protocol.
type server interface {
	// Serve returns when the server fails or is shut down.
	Serve() error
	// Shutdown waits for running requests, Close does not.
	Shutdown(context.Context) error
	Close() error
}

// listen returns the server of the protocol in the environment: by net/http, or by the further
// servers of the build.
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
		// Without these timeouts, a server keeps a silent connection forever.
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
