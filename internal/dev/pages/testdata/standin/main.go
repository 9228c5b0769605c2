// Command standin stands for a program of Grafana's stack, and for a service, where no registry
// answers: it answers each request with an empty 200, and each question about its health with yes.
package main

import (
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
)

var ports = []string{"3000", "3100", "3200", "4040", "4317", "4318", "8080", "9009", "9090", "9411",
	"12345"}

func main() {
	name := filepath.Base(os.Args[0])
	if slices.Contains([]string{"bash", "wget", "profilecli", "promtool"}, name) ||
		slices.Contains(os.Args, "-health") {
		return
	}
	for _, port := range ports {
		go http.ListenAndServe(":"+port, http.HandlerFunc( //nolint:errcheck // until the end
			func(http.ResponseWriter, *http.Request) {}))
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, os.Interrupt)
	<-end
}
