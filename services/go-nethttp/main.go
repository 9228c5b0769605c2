// Command go-nethttp keeps the contracts hello, http and compute with net/http alone.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"
)

// shutdownGrace is the time after SIGTERM after which running requests are cut off.
const shutdownGrace = time.Second

func main() {
	do := run
	if len(os.Args) > 1 && os.Args[1] == "health" {
		do = checkHealth
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "go-nethttp:", err)
		os.Exit(1)
	}
}

func run() error {
	if err := startProfiling(); err != nil {
		return err
	}
	if err := applyBudget(); err != nil {
		return err
	}
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()

	signals, err := newTelemetry(stop)
	if err != nil {
		return err
	}
	handler, err := signals.instrument(newHandler())
	if err != nil {
		return err
	}
	address := net.JoinHostPort(
		cmp.Or(os.Getenv("HOST"), "127.0.0.1"),
		cmp.Or(os.Getenv("PORT"), "8080"),
	)
	server, err := listen(address, handler)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve() }()

	select {
	case err := <-failed:
		return err
	case <-stop.Done():
		err := shutDown(server)
		signals.stop()
		return err
	}
}

// applyBudget limits the scheduler to CPUS cores and, if MEMORY_MIB is set, the garbage collector
// to three quarters of it; the rest is for stacks' growth, the binary and the kernel's buffers.
func applyBudget() error {
	cpus, err := strconv.Atoi(cmp.Or(os.Getenv("CPUS"), "1"))
	if err != nil || cpus < 1 {
		return fmt.Errorf("CPUS=%q is not a number of cores", os.Getenv("CPUS"))
	}
	runtime.GOMAXPROCS(cpus)

	memory, given := os.LookupEnv("MEMORY_MIB")
	if !given {
		return nil
	}
	mebibytes, err := strconv.ParseInt(memory, 10, 32)
	if err != nil || mebibytes < 1 {
		return fmt.Errorf("MEMORY_MIB=%q is not a number of mebibytes", memory)
	}
	debug.SetMemoryLimit(mebibytes << 20 / 4 * 3)
	return nil
}

func shutDown(server server) error {
	deadline, cancel := context.WithTimeout(context.Background(), shutdownGrace)
	defer cancel()
	err := server.Shutdown(deadline)
	if errors.Is(err, context.DeadlineExceeded) {
		return server.Close()
	}
	return err
}
