package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// echo responds with its request, byte for byte, and the addresses of both sides. From the request
// number in LIES on, one byte of each response is changed.
func echo(addr string) {
	lies, err := strconv.ParseInt(os.Getenv("LIES"), 10, 64)
	if err != nil {
		lies = 1 << 60
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	var asked atomic.Int64
	for {
		conn, err := l.Accept()
		if err != nil {
			os.Exit(1)
		}
		go func() {
			defer conn.Close()
			var heard bytes.Buffer
			in := bufio.NewReader(io.TeeReader(conn, &heard))
			for {
				r, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				body := fmt.Sprintf("%s\nfrom %s to %s", &heard, conn.RemoteAddr(), l.Addr())
				heard.Reset()
				if r.URL.Path == "/ready" {
					body = "ok"
				} else if asked.Add(1) >= lies {
					body = "p" + body[1:]
				}
				fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body),
					body)
			}
		}()
	}
}

// A service that quotes its request and addresses is compared by every byte except values of the
// lab, which are reported; one other byte is an error in every number.
func TestVersusOfAnEcho(t *testing.T) {
	testsets.Once(t, "services that quote what they are asked", testsets.Needs{})
	dir := ownFolder(t)
	line := []string{"--request", "POST /x?a=b", "--body", "y", "-H", "b-Field: 1", "-H",
		"A-field: 2", "--ready", "/ready", "-c", "4", "--aa=false", "--blocks", "1",
		"--measure", "300ms", "--slices", "500ms", "--warmup", "300ms", "--memory", "512MiB"}
	check := func(out string, commands ...string) (says string, errors, done int64) {
		t.Helper()
		_, stderr, exit := versus(t, append(append(commands, line...), "--out", out)...)
		if exit != cli.Fine && exit != cli.Invalid {
			t.Fatalf("exit %d\n%s", exit, stderr)
		}
		_, records, bad, err := record.Read(filepath.Join(dir, out))
		if err != nil || len(bad) > 0 || len(records) != len(commands) {
			t.Fatalf("%d records, bad %v, error %v\n%s", len(records), bad, err, stderr)
		}
		for _, r := range records {
			if len(r.Loads) == 0 {
				t.Fatalf("%+v\n%s", r.Failure, stderr)
			}
			for _, l := range r.Loads {
				errors, done = errors+l.Errors.Total(), done+l.Done
			}
		}
		return stderr, errors, done
	}
	says, errors, done := check("r", "SAYS='{echo}' ./app", "SAYS='{echo}' ./new")
	if errors != 0 || done == 0 {
		t.Errorf("%d of %d answers are errors", errors, done)
	}
	has(t, "what is said", says, "POST /x?a=b is checked against every byte of the body, "+
		"except for values that Prony sets and the body repeats: the address in the request (2 "+
		"places), the "+
		"source port of the request (1 place) (status 200)")
	if _, errors, done = check("lies", "SAYS='{echo}' LIES=4 ./app"); errors == 0 || done > errors {
		t.Errorf("%d of %d answers are errors, want all", errors, done)
	}
}
