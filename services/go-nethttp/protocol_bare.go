//go:build !grpc

package main

import (
	"fmt"
	"net/http"
)

// listenFurther has no protocol in this build, which links neither QUIC nor gRPC.
func listenFurther(protocol, _ string, _ http.Handler) (server, error) {
	return nil, fmt.Errorf("PROTOCOL=%q: this build speaks http, https, h2 and h2c", protocol)
}
