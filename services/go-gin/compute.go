package main

import (
	"math/rand/v2"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/codec/json"
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

func data(c *gin.Context) {
	answerJSON(c, dataAnswer{Data: products})
}

func concat(c *gin.Context) {
	characters := make([]byte, concatLength)
	for i := range characters {
		// The package's own functions draw from a generator per thread, so no lock is shared.
		characters[i] = alphabet[rand.IntN(len(alphabet))]
	}
	answerJSON(c, concatAnswer{Concat: string(characters)})
}

func fibonacci(c *gin.Context) {
	answerJSON(c, fibonacciAnswer{Fibonacci: fib(fibonacciNumber)})
}

func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

// answerJSON marshals as Gin's own c.JSON does, by Gin's codec, but before it sends: c.JSON does
// not set the length, so net/http would chunk bodies larger than its buffer.
func answerJSON(c *gin.Context, value any) {
	body, err := json.API.Marshal(value)
	if err != nil {
		empty(c, http.StatusInternalServerError)
		return
	}
	c.Data(http.StatusOK, "application/json; charset=utf-8", body)
}
