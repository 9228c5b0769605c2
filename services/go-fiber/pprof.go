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

// startProfiling serves Go's profiles on PPROF_PORT of PPROF_HOST, by default 127.0.0.1, and does
// nothing without that port. The package net/http/pprof also registers itself with
// http.DefaultServeMux, which nothing here serves.
func startProfiling() error {
	port := os.Getenv("PPROF_PORT")
	if port == "" {
		// The runtime samples allocations in every binary that can write a heap profile, as
		// net/http/pprof can. Without profiling, this must cost nothing.
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
		// Serve normally returns only when the process ends.
		fmt.Fprintln(os.Stderr, "cannot serve profiles any more:", server.Serve(listener))
	}()
	return nil
}

// called rejects requests by a host name and from web pages: a page in a browser can make a name
// resolve to this machine, and a profile contains data in memory.
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

// profileRate reads a rate: for runtime.SetMutexProfileFraction one event in this many, for
// runtime.SetBlockProfileRate the nanoseconds blocked per sample; 0 disables the profile.
func profileRate(name string) (int, error) {
	rate, err := strconv.Atoi(cmp.Or(os.Getenv(name), "0"))
	if err != nil || rate < 0 {
		return 0, fmt.Errorf("%s=%q is not a rate", name, os.Getenv(name))
	}
	return rate, nil
}
