//go:build !otel

package main

import (
	"context"
	"net/http"
)

// telemetry of this build is nothing: none of OpenTelemetry's packages is linked.
type telemetry struct{}

func newTelemetry(context.Context) (telemetry, error) {
	return telemetry{}, nil
}

func (telemetry) instrument(handler http.Handler) http.Handler { return handler }

func (telemetry) stop() {}

func exportLog(context.Context, string) {}
