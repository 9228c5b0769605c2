package main

import (
	"errors"
	"time"

	"github.com/gofiber/fiber/v3"
)

func newApp(signals telemetry) (*fiber.App, error) {
	app := fiber.New(fiber.Config{
		// The first three make paths outside of the contract 404: /Hello, /hello/, HEAD.
		CaseSensitive:           true,
		StrictRouting:           true,
		DisableHeadAutoRegister: true,
		ErrorHandler:            answerError,
		BodyLimit:               maxBody,
		// A body is encoded as received, regardless of its media type.
		DisablePreParseMultipartForm: true,
		// Without these timeouts, a server keeps a silent connection forever.
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

// answerError sends the status without Fiber's text. For a known path with another method, Fiber
// has 405, and the contract requires 404.
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

// empty sends no body, unlike c.SendStatus, whose body is the name of the status.
func empty(c fiber.Ctx, status int) error {
	c.Status(status)
	return nil
}

func answer(c fiber.Ctx, mediaType string, body []byte) error {
	c.Set(fiber.HeaderContentType, mediaType)
	return c.Send(body)
}

// parameter returns a parameter, or fallback only if it is absent: Fiber's Query does not
// distinguish absent from empty. The text is valid only until the handler returns.
func parameter(c fiber.Ctx, name, fallback string) string {
	if !c.Request().URI().QueryArgs().Has(name) {
		return fallback
	}
	return c.Query(name)
}
