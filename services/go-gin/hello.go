package main

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
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

func (e cache) hello(c *gin.Context) {
	sleep, sleepValid := parseSleep(c)
	log, logValid := parseLog(c)
	if !sleepValid || !logValid {
		empty(c, http.StatusBadRequest)
		return
	}
	key := c.DefaultQuery("key", "1")
	if log {
		// A goroutine has no name, so its connection stands for it.
		fmt.Printf("hello mode=%s key=%s thread=goroutine/%s\n", mode, key, c.Request.RemoteAddr)
	}
	time.Sleep(sleep)
	value, found := e[key]
	if !found {
		notFound(c)
		return
	}
	c.Data(http.StatusOK, "text/plain", []byte("Hello from REST "+value))
}

func parseSleep(c *gin.Context) (sleep time.Duration, valid bool) {
	text, given := c.GetQuery("sleep")
	if !given {
		return 0, true
	}
	if !secondsForm.MatchString(text) {
		return 0, false
	}
	sleep, err := time.ParseDuration(text + "s")
	return sleep, err == nil && sleep <= maxSleep
}

func parseLog(c *gin.Context) (on, valid bool) {
	text := c.DefaultQuery("log", "false")
	return text == "true", text == "true" || text == "false"
}
