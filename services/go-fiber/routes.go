package main

import (
	"errors"
	"time"

	"github.com/gofiber/fiber/v3"
)

func newApp(signals telemetry) (*fiber.App, error) {
	app := fiber.New(fiber.Config{
		// The first three because what the contract does not name is 404: /Hello, /hello/, HEAD.
		CaseSensitive:           true,
		StrictRouting:           true,
		DisableHeadAutoRegister: true,
		ErrorHandler:            answerError,
		BodyLimit:               maxBody,
		// A body is encoded as it came, whatever its media type says.
		DisablePreParseMultipartForm: true,
		// A server without these two keeps a silent connection for ever.
		ReadTimeout: time.Minute,
		IdleTimeout: 2 * time.Minute,
	})
	if err := signals.instrument(app); err != nil {
		return nil, err
	}
	app.Get("/hello/"+mode, newCache().hello)

	app.Get("/", ok) // fasthttp has read the body by now.
	app.Get("/no-read", ok)
	app.Get("/hello", helloWorld)
	app.Get("/file", newFile().serve)
	app.Post("/load", load)

	app.Get("/data", data)
	app.Get("/concat", concat)
	app.Get("/fibonacci", fibonacci)

	app.Get("/healthz", ok)
	app.Get("/readyz", ok)
	return app, nil
}

// answerError leaves out Fiber's text. A known path with another method is 405 to Fiber, and
// unknown to the contract.
func answerError(c fiber.Ctx, err error) error {
	status := fiber.StatusInternalServerError
	if known, ok := errors.AsType[*fiber.Error](err); ok {
		status = known.Code
	}
	if status == fiber.StatusMethodNotAllowed {
		c.Response().Header.Del(fiber.HeaderAllow)
		status = fiber.StatusNotFound
	}
	return empty(c, status)
}

func ok(c fiber.Ctx) error {
	return empty(c, fiber.StatusOK)
}

// empty is not c.SendStatus, which would make the status's name the body.
func empty(c fiber.Ctx, status int) error {
	c.Status(status)
	return nil
}

func answer(c fiber.Ctx, mediaType string, body []byte) error {
	c.Set(fiber.HeaderContentType, mediaType)
	return c.Send(body)
}

// parameter tells a parameter that is absent, which has a default, from one that is empty; Fiber's
// Query does not. Its text is valid only until the handler returns.
func parameter(c fiber.Ctx, name, fallback string) string {
	if !c.Request().URI().QueryArgs().Has(name) {
		return fallback
	}
	return c.Query(name)
}
