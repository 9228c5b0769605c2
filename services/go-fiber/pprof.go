package main

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"runtime"
	"strconv"
	"time"
)

// startProfiling serves Go's profiles on PPROF_PORT of PPROF_HOST, or else of 127.0.0.1, for
// whoever profiles a trial, and does nothing without that port. The package net/http/pprof
// registers itself with http.DefaultServeMux too, but nothing here serves that one.
func startProfiling() error {
	port := os.Getenv("PPROF_PORT")
	if port == "" {
		// The runtime samples allocations in every binary that has a way to write a heap profile,
		// as this one has by net/http/pprof. Unprofiled it is to be as fast as one without.
		runtime.MemProfileRate = 0
		return nil
	}
	mutex, err := profileRate("PPROF_MUTEX")
	if err != nil {
		return err
	}
	block, err := profileRate("PPROF_BLOCK")
	if err != nil {
		return err
	}
	runtime.SetMutexProfileFraction(mutex)
	runtime.SetBlockProfileRate(block)

	host := cmp.Or(os.Getenv("PPROF_HOST"), "127.0.0.1")
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return fmt.Errorf("PPROF_PORT=%q: %w", port, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	server := &http.Server{Handler: called(mux), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		// It serves until the process ends, so that it came back at all is the news.
		fmt.Fprintln(os.Stderr, "cannot serve profiles any more:", server.Serve(listener))
	}()
	return nil
}

// called answers who calls it by an address: a page in a browser can make a name mean this machine,
// and a profile has what is in memory.
func called(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil || net.ParseIP(host) == nil || r.Header.Get("Origin") != "" {
			http.Error(w, "call it by its address", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// profileRate is of runtime.SetMutexProfileFraction, one event in so many, or of
// runtime.SetBlockProfileRate, nanoseconds blocked per sample; 0 takes no such profile.
func profileRate(name string) (int, error) {
	rate, err := strconv.Atoi(cmp.Or(os.Getenv(name), "0"))
	if err != nil || rate < 0 {
		return 0, fmt.Errorf("%s=%q is not a rate", name, os.Getenv(name))
	}
	return rate, nil
}
