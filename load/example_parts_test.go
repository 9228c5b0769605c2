package load_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"prony.example/load"
	"prony.example/load/engine/nethttp"
	"prony.example/record"
)

// Two processes send one load, each its part of it. A ledger adds up what both have recorded, and
// computes the result once over the sum.
func ExampleLedger() {
	address, end := greet()
	defer end()
	whole := load.Spec{
		Name: "hello", Address: address, Model: record.Closed, Connections: 2, Seed: 1,
		Requests: 100, Window: time.Minute, Timeout: 10 * time.Second,
		Scenario: load.Scenario{Requests: []load.Request{
			{Method: "GET", Path: "/?key=7", Want: "hello 7", HasWant: true},
		}},
	}
	ledger, err := load.NewLedger(whole)
	if err != nil {
		log.Fatal(err)
	}
	for i := range 2 { // in practice, each part runs in its own process
		spec := whole
		spec.Part = load.Part{Index: i, Of: 2}
		r, err := load.Run(context.Background(), spec)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("part %d: %d answers\n", i, r.Answered)
		if err := ledger.Close(r.Ledger.Books(), 0, spec.Part, nil); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Printf("together: %d answers\n", ledger.Result().Answered)
	// Output:
	// part 0: 50 answers
	// part 1: 50 answers
	// together: 100 answers
}

// A gRPC call with a message in JSON: the server's reflection describes the encoding.
func ExampleMessages() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	reflection.Register(server)
	go server.Serve(listener)
	defer server.Stop()

	speak := nethttp.Config{Protocol: nethttp.GRPC, Network: "tcp",
		Address: listener.Addr().String(), Host: "localhost"}
	requests := []load.Request{{Method: "POST", Path: "/grpc.health.v1.Health/Check",
		Body: `{"service": "shop"}`}}
	if err := load.Messages(context.Background(), speak, requests); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%q\n", requests[0].Body)
	// Output: "\n\x04shop"
}
