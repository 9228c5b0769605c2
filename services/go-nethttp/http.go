package main

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"
)

const (
	maxFile     = 16 << 20
	maxBody     = 16 << 20
	defaultFile = "1048576"
)

var (
	//go:embed lorem.txt
	lorem []byte

	sizeForm = regexp.MustCompile(`^[0-9]{1,8}$`)
)

func root(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		empty(w, http.StatusBadRequest)
		return
	}
	empty(w, http.StatusOK)
}

func helloWorld(w http.ResponseWriter, _ *http.Request) {
	answer(w, "text/plain", []byte("Hello world"))
}

// file is the repeated text at its maximum length; every response is a slice of it.
type file []byte

func newFile() file {
	return bytes.Repeat(lorem, maxFile/len(lorem)+1)[:maxFile]
}

func (f file) serve(w http.ResponseWriter, r *http.Request) {
	text := parameter(r.URL.Query(), "size", defaultFile)
	size, err := strconv.Atoi(text)
	if err != nil || !sizeForm.MatchString(text) || size > maxFile {
		empty(w, http.StatusBadRequest)
		return
	}
	answer(w, "application/octet-stream", f[:size])
}

func load(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		empty(w, statusOf(err))
		return
	}
	answer(w, "text/plain", base64.StdEncoding.AppendEncode(nil, body))
}

func statusOf(readError error) int {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](readError); tooLarge {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadRequest
}
