package main

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"time"
)

// healthTimeout is shorter than that of the image's HEALTHCHECK, so that the reason is printed.
const healthTimeout = time.Second

// checkHealth checks the running service. Its image contains no other program that could.
func checkHealth() error {
	client := http.Client{Timeout: healthTimeout}
	answer, err := client.Get("http://127.0.0.1:" + cmp.Or(os.Getenv("PORT"), "8080") + "/healthz")
	if err != nil {
		return err
	}
	_ = answer.Body.Close() // the process ends here
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("/healthz was answered %s", answer.Status)
	}
	return nil
}
