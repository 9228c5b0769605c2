// Units is a service whose requests take a known number of equal units of CPU time, in addition to
// the cost of net/http: UNITS each, and RARE more in every EVERY-th request.
package main

import (
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
)

var (
	requests atomic.Int64
	kept     atomic.Uint64 // keeps the compiler from removing the work
)

// work uses units of about 100 ns of CPU time each.
func work(units int) {
	x := uint64(units) + 88172645463325252
	for range units * 40 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	kept.Store(x)
}

func number(name string) int {
	n, _ := strconv.Atoi(os.Getenv(name))
	return n
}

func main() {
	units, rare, every := number("UNITS"), number("RARE"), int64(number("EVERY"))
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		work(units)
		if every > 0 && requests.Add(1)%every == 0 {
			work(rare)
		}
		_, _ = w.Write([]byte("hello"))
	})
	if err := http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil); err != nil {
		println(err.Error())
		os.Exit(1)
	}
}
