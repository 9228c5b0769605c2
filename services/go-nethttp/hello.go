package main

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"
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

func (c cache) hello(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	sleep, sleepValid := parseSleep(query)
	log, logValid := parseLog(query)
	if !sleepValid || !logValid {
		empty(w, http.StatusBadRequest)
		return
	}
	key := parameter(query, "key", "1")
	if log {
		// A goroutine has no name, so its connection stands for it.
		line := fmt.Sprintf("hello mode=%s key=%s thread=goroutine/%s", mode, key, r.RemoteAddr)
		fmt.Println(line)
		exportLog(r.Context(), line)
	}
	time.Sleep(sleep)
	value, found := c[key]
	if !found {
		notFound(w, r)
		return
	}
	answer(w, "text/plain", []byte("Hello from REST "+value))
}

func parseSleep(query url.Values) (sleep time.Duration, valid bool) {
	if !query.Has("sleep") {
		return 0, true
	}
	text := query.Get("sleep")
	if !secondsForm.MatchString(text) {
		return 0, false
	}
	sleep, err := time.ParseDuration(text + "s")
	return sleep, err == nil && sleep <= maxSleep
}

func parseLog(query url.Values) (on, valid bool) {
	text := parameter(query, "log", "false")
	return text == "true", text == "true" || text == "false"
}
