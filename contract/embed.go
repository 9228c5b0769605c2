// Package contract holds the golden answers that every service is checked against, and the text
// that some of them are made of. README.md is the prose; internal/service does the checking.
package contract

import "embed"

// Files are hello.yaml, http.yaml, compute.yaml, openapi.yaml and lorem.txt.
//
//go:embed *.yaml lorem.txt
var Files embed.FS
