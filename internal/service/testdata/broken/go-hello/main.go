// Program hello meets the contract hello, except for the defect in the variable DEFECT. Without a
// defect it passes all checks.
package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

// misled returns, for each defect, the key whose value a request gets: another key than its own if
// the defect applies to it.
var misled = map[string]func(r *http.Request, key string) string{
	"constant":   func(*http.Request, string) string { return "1" },
	"agent":      func(r *http.Request, key string) string { return unless(r.UserAgent() != "", key) },
	"bare":       func(r *http.Request, key string) string { return unless(len(r.Header) == 0, key) },
	"order":      func(_ *http.Request, key string) string { return unless(!late.Load(), key) },
	"golden":     func(_ *http.Request, key string) string { return unless(golden(key), key) },
	"connection": func(r *http.Request, key string) string { return unless(firstAsks(r), key) },
	"echo": func(r *http.Request, key string) string {
		if echo := r.Header.Get("X-Key"); echo != "" {
			return echo
		}
		return key
	},
}

// unless returns the key if well, and otherwise another one.
func unless(well bool, key string) string {
	if well {
		return key
	}
	return "1"
}

func golden(key string) bool {
	return slices.Contains([]string{"1", "7", "9", "4711", "31415", "50000"}, key)
}

// first is the client's address of the first connection that requests a key.
var first atomic.Pointer[string]

func firstAsks(r *http.Request) bool {
	first.CompareAndSwap(nil, &r.RemoteAddr)
	return *first.Load() == r.RemoteAddr
}

var (
	defect  = os.Getenv("DEFECT")
	seconds = regexp.MustCompile(`^[0-9]{1,2}(\.[0-9]{1,3})?$`)
)

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			answer(w, 200, "")
			return
		}
		if defect == "log" {
			fmt.Println(r.Method, r.URL)
		}
		hello(w, r)
	})
	listener, err := net.Listen("tcp", os.Getenv("HOST")+":"+os.Getenv("PORT"))
	if err == nil {
		err = http.Serve(spying{listener}, nil)
	}
	fmt.Fprintln(os.Stderr, err)
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
		answer(w, 404, "")
	case !seconds.MatchString(sleep) || wait > 60 || log != "true" && log != "false":
		answer(w, 400, "")
	case err != nil || n < 1 || n > 50000:
		answer(w, 404, "")
	default:
		time.Sleep(time.Duration(wait * float64(time.Second)))
		if log == "true" {
			fmt.Println("hello mode=virtual key=" + key + " thread=goroutine/" + r.RemoteAddr)
		}
		if defect == "etag" && r.Header.Get("If-None-Match") != "" {
			answer(w, 304, "")
			return
		}
		if other, ok := misled[defect]; ok {
			key = other(r, key)
		}
		answer(w, 200, "Hello from REST value-"+key)
	}
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	fmt.Fprint(w, body)
}

// late reports whether the present request had another header before Host.
var late atomic.Bool

type spying struct{ net.Listener }

func (s spying) Accept() (net.Conn, error) {
	conn, err := s.Listener.Accept()
	return spied{conn}, err
}

type spied struct{ net.Conn }

func (s spied) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if _, headers, ok := bytes.Cut(p[:n], []byte("\r\n")); ok {
		late.Store(!bytes.HasPrefix(bytes.ToLower(headers), []byte("host:")))
	}
	return n, err
}
