package main

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"time"
)

// healthTimeout is below that of the image's HEALTHCHECK, so that the reason is still said.
const healthTimeout = time.Second

// checkHealth asks the service that runs beside it: in its image no other program could.
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
