//go:build !otel

package main

import (
	"context"
	"net/http"
)

// telemetry does nothing in this build, which links no OpenTelemetry package.
type telemetry struct{}

func newTelemetry(context.Context) (telemetry, error) {
	return telemetry{}, nil
}

func (telemetry) instrument(handler http.Handler) (http.Handler, error) { return handler, nil }

func (telemetry) stop() {}

func exportLog(context.Context, string) {}
