//go:build !otel

package main

import (
	"context"

	"github.com/gofiber/fiber/v3"
)

// telemetry of this build is nothing: none of OpenTelemetry's packages is linked.
type telemetry struct{}

func newTelemetry(context.Context) (telemetry, error) {
	return telemetry{}, nil
}

func (telemetry) instrument(*fiber.App) error { return nil }

func (telemetry) stop() {}

func exportLog(context.Context, string) {}
