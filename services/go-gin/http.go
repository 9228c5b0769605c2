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

	"github.com/gin-gonic/gin"
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

func root(c *gin.Context) {
	if _, err := io.Copy(io.Discard, c.Request.Body); err != nil {
		empty(c, http.StatusBadRequest)
		return
	}
	empty(c, http.StatusOK)
}

func helloWorld(c *gin.Context) {
	c.Data(http.StatusOK, "text/plain", []byte("Hello world"))
}

// file is the repeated text at its maximum length; every response is a slice of it.
type file []byte

func newFile() file {
	return bytes.Repeat(lorem, maxFile/len(lorem)+1)[:maxFile]
}

func (f file) serve(c *gin.Context) {
	text := c.DefaultQuery("size", defaultFile)
	size, err := strconv.Atoi(text)
	if err != nil || !sizeForm.MatchString(text) || size > maxFile {
		empty(c, http.StatusBadRequest)
		return
	}
	c.Data(http.StatusOK, "application/octet-stream", f[:size])
}

func load(c *gin.Context) {
	c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, maxBody)
	body, err := c.GetRawData()
	if err != nil {
		empty(c, statusOf(err))
		return
	}
	c.Data(http.StatusOK, "text/plain", base64.StdEncoding.AppendEncode(nil, body))
}

func statusOf(readError error) int {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](readError); tooLarge {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadRequest
}
