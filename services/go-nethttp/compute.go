package main

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
)

const (
	alphabet        = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	concatLength    = 10_000
	fibonacciNumber = 30
)

type product struct {
	ID     string  `json:"id"`
	Name   string  `json:"name"`
	Price  float64 `json:"price"`
	Weight int     `json:"weight"`
}

type dataAnswer struct {
	Data []product `json:"data"`
}

type concatAnswer struct {
	Concat string `json:"concat"`
}

type fibonacciAnswer struct {
	Fibonacci int `json:"fibonacci"`
}

var products = []product{
	{ID: "prod3568", Name: "Egg Whisk", Price: 3.99, Weight: 150},
	{ID: "prod7340", Name: "Tea Cosy", Price: 5.99, Weight: 100},
	{ID: "prod8643", Name: "Spatula", Price: 1, Weight: 80},
}

func data(w http.ResponseWriter, _ *http.Request) {
	answerJSON(w, dataAnswer{Data: products})
}

func concat(w http.ResponseWriter, _ *http.Request) {
	characters := make([]byte, concatLength)
	for i := range characters {
		// The package's own functions draw from a generator per thread, so no lock is shared.
		characters[i] = alphabet[rand.IntN(len(alphabet))]
	}
	answerJSON(w, concatAnswer{Concat: string(characters)})
}

func fibonacci(w http.ResponseWriter, _ *http.Request) {
	answerJSON(w, fibonacciAnswer{Fibonacci: fib(fibonacciNumber)})
}

func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

// answerJSON marshals before it sends, because an Encoder would add a line feed and no length.
func answerJSON(w http.ResponseWriter, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		empty(w, http.StatusInternalServerError)
		return
	}
	answer(w, "application/json", body)
}
