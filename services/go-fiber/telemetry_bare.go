//go:build !otel

package main

import (
	"context"

	"github.com/gofiber/fiber/v3"
)

// telemetry does nothing in this build, which links no OpenTelemetry package.
type telemetry struct{}

func newTelemetry(context.Context) (telemetry, error) {
	return telemetry{}, nil
}

func (telemetry) instrument(*fiber.App) error { return nil }

func (telemetry) stop() {}

func exportLog(context.Context, string) {}
