//go:build !grpc

package main

import (
	"fmt"
	"net/http"
)

// listenFurther of this build knows no further protocol: neither QUIC nor gRPC is linked.
func listenFurther(protocol, _ string, _ http.Handler) (server, error) {
	return nil, fmt.Errorf("PROTOCOL=%q: this build speaks http, https, h2 and h2c", protocol)
}
