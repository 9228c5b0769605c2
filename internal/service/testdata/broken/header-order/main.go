// Program header-order answers rightly only where Host is the first header.
package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"sync/atomic"
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
	listener, err := net.Listen("tcp", addr)
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
		if late.Load() {
			key = "1"
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

// late says that the request under way had another header before Host.
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
