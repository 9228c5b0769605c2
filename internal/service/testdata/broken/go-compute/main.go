// Program compute meets the contract compute, except for the defect in the variable DEFECT. Without
// a defect it passes all checks.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
)

const data = `{"data":[{"id":"prod3568","name":"Egg Whisk","price":3.99,"weight":150},` +
	`{"id":"prod7340","name":"Tea Cosy","price":5.99,"weight":100},` +
	`{"id":"prod8643","name":"Spatula","price":1,"weight":80}]}`

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

var defect = os.Getenv("DEFECT")

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "GET /healthz":
			answer(w, 200, "")
		case "GET /data":
			sendData(w, r)
		case "GET /concat":
			answer(w, 200, concat())
		case "GET /fibonacci":
			fibonacci(w)
		default:
			answer(w, 404, "")
		}
	})
	addr := os.Getenv("HOST") + ":" + os.Getenv("PORT")
	fmt.Fprintln(os.Stderr, http.ListenAndServe(addr, nil))
	os.Exit(1)
}

func sendData(w http.ResponseWriter, r *http.Request) {
	switch {
	case defect == "status":
		answer(w, 201, data)
	case defect == "chunks":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, data[:10])
		w.(http.Flusher).Flush()
		fmt.Fprint(w, data[10:])
	case defect == "close":
		closeAfter(w)
	case defect == "gzip" && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip"):
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		fmt.Fprint(z, data)
		z.Close()
		w.Header().Set("Content-Encoding", "gzip")
		answer(w, 200, b.String())
	default:
		answer(w, 200, data)
	}
}

// closeAfter closes the connection after the answer without announcing it.
func closeAfter(w http.ResponseWriter) {
	conn, out, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(out, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n%s", len(data), data)
	out.Flush()
	conn.Close()
}

var (
	asked atomic.Int64
	stock = func() (all [8]string) {
		for i := range all {
			all[i] = drawn()
		}
		return all
	}()
)

func concat() string {
	switch defect {
	case "remembered":
		return stock[0]
	case "stocked":
		return stock[asked.Add(1)%8]
	case "counted":
		return `{"concat":"` + fmt.Sprintf("%08d", asked.Add(1)) + stock[0][19:]
	}
	return drawn()
}

func drawn() string {
	b := make([]byte, 10000)
	for i := range b {
		b[i] = letters[rand.IntN(len(letters))]
	}
	return `{"concat":"` + string(b) + `"}`
}

func fibonacci(w http.ResponseWriter) {
	switch defect {
	case "route":
		answer(w, 404, "")
	case "body":
		answer(w, 200, fmt.Sprintf(`{"fibonacci":%d}`, fib(29)))
	default:
		answer(w, 200, fmt.Sprintf(`{"fibonacci":%d}`, fib(30)))
	}
}

func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	fmt.Fprint(w, body)
}
