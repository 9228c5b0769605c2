// Program header-etag answers 304 to whoever has anything in stock.
package main

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"time"
)

var seconds = regexp.MustCompile(`^[0-9]{1,2}(\.[0-9]{1,3})?$`)

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			answer(w, r, 200, "")
			return
		}
		hello(w, r)
	})
	addr := os.Getenv("HOST") + ":" + os.Getenv("PORT")
	fmt.Fprintln(os.Stderr, http.ListenAndServe(addr, nil))
	os.Exit(1)
}

func value(r *http.Request, name, otherwise string) string {
	if values, ok := r.URL.Query()[name]; ok {
		return values[0]
	}
	return otherwise
}

func hello(w http.ResponseWriter, r *http.Request) {
	key, sleep, log := value(r, "key", "1"), value(r, "sleep", "0"), value(r, "log", "false")
	n, err := strconv.Atoi(key)
	wait, _ := strconv.ParseFloat(sleep, 64)
	switch {
	case r.Method != "GET" || r.URL.Path != "/hello/virtual":
		answer(w, r, 404, "")
	case !seconds.MatchString(sleep) || wait > 60 || log != "true" && log != "false":
		answer(w, r, 400, "")
	case err != nil || n < 1 || n > 50000:
		answer(w, r, 404, "")
	default:
		time.Sleep(time.Duration(wait * float64(time.Second)))
		if log == "true" {
			fmt.Println("hello mode=virtual key=" + key + " thread=goroutine/" + r.RemoteAddr)
		}
		if r.Header.Get("If-None-Match") != "" {
			answer(w, r, 304, "")
			return
		}
		answer(w, r, 200, "Hello from REST value-"+key)
	}
}

func answer(w http.ResponseWriter, r *http.Request, status int, body string) {
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	fmt.Fprint(w, body)
}
