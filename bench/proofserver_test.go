package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/generator/truth"
	"prony.example/load/pace"
)

// burnEnv makes this program the server of the proof, listening on the PORT of the environment.
const burnEnv = "PRONY_BENCH_BURN"

// burner is a server whose requests take a known amount of work. Work is counted in rounds of a
// loop and not in time, so that a slower processor slows all of them equally.
type burner struct {
	// Rounds are the costs of a request. Each applies to proofSlice requests in turn, so that the
	// costs are compared within milliseconds, in one process.
	Rounds []int64
	Cold   int64         // cost of a request until For after the load began; 0: no other
	For    time.Duration // time of Cold
	Grow   float64       // by how much of the first a request becomes more expensive per second
}

// proofSlice is the number of requests with the same cost in a turn.
const proofSlice = 200

// burning is a running burner.
type burning struct {
	burner
	n       int64 // requests so far
	began   int64 // of the load
	sliceAt int64 // the process's CPU time when the slice began
	slices  [][]int64
}

// burnAsChild serves until it is killed.
func burnAsChild(text string) error {
	b := &burning{}
	if err := json.Unmarshal([]byte(text), &b.burner); err != nil {
		return err
	}
	b.slices = make([][]int64, len(b.Rounds))
	l, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PORT"))
	if err != nil {
		return err
	}
	_, err = truth.Serve(context.Background(), l.(*net.TCPListener), b.answer, truth.Options{})
	return err
}

// answer serves the part of the contract compute that the lab checks, and two further paths.
func (b *burning) answer(now int64, r truth.Request) truth.Reply {
	const data = `{"data":[{"id":"prod3568","name":"Egg Whisk","price":3.99,"weight":150},` +
		`{"id":"prod7340","name":"Tea Cosy","price":5.99,"weight":100},` +
		`{"id":"prod8643","name":"Spatula","price":1,"weight":80}]}`
	reply := func(text []byte) truth.Reply { return truth.Reply{At: now, Text: text} }
	switch string(r.Method) + " " + string(r.Path) {
	case "GET /burn":
		spend(b.rounds())
		return reply(truth.Answer("200 OK", "", "ok"))
	case "GET /cost":
		return reply(object(b.costs()))
	case "GET /data":
		return reply(object(data))
	case "GET /concat":
		return reply(object(`{"concat":"` + drawn(uint64(r.N)) + `"}`))
	case "GET /fibonacci":
		return reply(object(`{"fibonacci":832040}`))
	}
	return reply(truth.Answer("404 X", "", ""))
}

// drawn returns 10,000 letters that differ between requests.
func drawn(request uint64) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	text := make([]byte, 10_000)
	for i := range text {
		text[i] = letters[int(float64(len(letters))*(1-pace.Uniform(request, uint64(i))))]
	}
	return string(text)
}

// object is a JSON response.
func object(body string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n%s", len(body), body)
}

// rounds returns the cost of the next request.
func (b *burning) rounds() int64 {
	turn := int(b.n / proofSlice % int64(len(b.Rounds)))
	if len(b.Rounds) > 1 && b.n%proofSlice == 0 {
		b.endSlice(turn)
	}
	b.n++
	if b.n <= 2 {
		b.began = clock.Mono() // the lab sends one request before the load, to time the start
	}
	since := time.Duration(clock.Mono() - b.began)
	n := b.Rounds[turn]
	if b.Cold > 0 && since < b.For {
		n = b.Cold
	}
	return n + int64(float64(n)*b.Grow*since.Seconds())
}

// endSlice stores the CPU time of the last slice, of all threads together. It leaves out the first
// slice, which contains the program's start.
func (b *burning) endSlice(next int) {
	now := processCPU()
	if b.n > proofSlice {
		last := (next + len(b.Rounds) - 1) % len(b.Rounds)
		b.slices[last] = append(b.slices[last], (now-b.sliceAt)/proofSlice)
	}
	b.sliceAt = now
}

// costs returns the ns of CPU time per request, by slice, for each of the Rounds.
func (b *burning) costs() string {
	text, err := json.Marshal(b.slices)
	if err != nil {
		panic("bench: numbers cannot be written as JSON: " + err.Error())
	}
	return string(text)
}

// spent keeps the compiler from removing spend.
var spent atomic.Uint64

// spend runs rounds of a multiplication that each depend on the one before (Knuth's MMIX
// generator).
func spend(rounds int64) {
	x := uint64(rounds)
	for range rounds {
		x = x*6364136223846793005 + 1442695040888963407
	}
	spent.Store(x)
}
