package main

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v3"
)

const (
	mode      = "virtual"
	cacheSize = 50_000
	maxSleep  = time.Minute
)

var secondsForm = regexp.MustCompile(`^[0-9]{1,2}(\.[0-9]{1,3})?$`)

// cache is filled before the server listens and then only read, so it needs no lock.
type cache map[string]string

func newCache() cache {
	entries := make(cache, cacheSize)
	for number := 1; number <= cacheSize; number++ {
		key := strconv.Itoa(number)
		entries[key] = "value-" + key
	}
	return entries
}

func (e cache) hello(c fiber.Ctx) error {
	sleep, sleepValid := parseSleep(c)
	log, logValid := parseLog(c)
	if !sleepValid || !logValid {
		return empty(c, fiber.StatusBadRequest)
	}
	key := parameter(c, "key", "1")
	if log {
		// A goroutine has no name, so its connection stands for it.
		connection := c.RequestCtx().RemoteAddr()
		line := fmt.Sprintf("hello mode=%s key=%s thread=goroutine/%s", mode, key, connection)
		fmt.Println(line)
		exportLog(c.Context(), line)
	}
	time.Sleep(sleep)
	value, found := e[key]
	if !found {
		return empty(c, fiber.StatusNotFound)
	}
	return answer(c, "text/plain", []byte("Hello from REST "+value))
}

func parseSleep(c fiber.Ctx) (sleep time.Duration, valid bool) {
	text := parameter(c, "sleep", "0")
	if !secondsForm.MatchString(text) {
		return 0, false
	}
	sleep, err := time.ParseDuration(text + "s")
	return sleep, err == nil && sleep <= maxSleep
}

func parseLog(c fiber.Ctx) (on, valid bool) {
	text := parameter(c, "log", "false")
	return text == "true", text == "true" || text == "false"
}
