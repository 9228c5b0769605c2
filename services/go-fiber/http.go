package main

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"regexp"
	"strconv"

	"github.com/gofiber/fiber/v3"
)

const (
	maxFile     = 16 << 20
	maxBody     = 16 << 20
	defaultFile = "1048576"
)

var (
	//go:embed lorem.txt
	lorem []byte

	sizeForm = regexp.MustCompile(`^[0-9]{1,8}$`)
)

func helloWorld(c fiber.Ctx) error {
	return answer(c, "text/plain", []byte("Hello world"))
}

// file is the repeated text at its maximum length; every response is a slice of it.
type file []byte

func newFile() file {
	return bytes.Repeat(lorem, maxFile/len(lorem)+1)[:maxFile]
}

func (f file) serve(c fiber.Ctx) error {
	text := parameter(c, "size", defaultFile)
	size, err := strconv.Atoi(text)
	if err != nil || !sizeForm.MatchString(text) || size > maxFile {
		return empty(c, fiber.StatusBadRequest)
	}
	return answer(c, "application/octet-stream", f[:size])
}

func load(c fiber.Ctx) error {
	// Body would unpack a compressed one first.
	body := base64.StdEncoding.AppendEncode(nil, c.BodyRaw())
	return answer(c, "text/plain", body)
}
