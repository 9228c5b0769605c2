// Program remembered-concat draws /concat once and keeps it.
package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
)

const data = `{"data":[{"id":"prod3568","name":"Egg Whisk","price":3.99,"weight":150},` +
	`{"id":"prod7340","name":"Tea Cosy","price":5.99,"weight":100},` +
	`{"id":"prod8643","name":"Spatula","price":1,"weight":80}]}`

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "GET /healthz":
			answer(w, 200, "")
		case "GET /data":
			answer(w, 200, data)
		case "GET /concat":
			answer(w, 200, kept)
		case "GET /fibonacci":
			answer(w, 200, fmt.Sprintf(`{"fibonacci":%d}`, fib(30)))
		default:
			answer(w, 404, "")
		}
	})
	addr := os.Getenv("HOST") + ":" + os.Getenv("PORT")
	fmt.Fprintln(os.Stderr, http.ListenAndServe(addr, nil))
	os.Exit(1)
}

func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

func drawn() string {
	b := make([]byte, 10000)
	for i := range b {
		b[i] = letters[rand.IntN(len(letters))]
	}
	return `{"concat":"` + string(b) + `"}`
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	fmt.Fprint(w, body)
}

var kept = drawn()
