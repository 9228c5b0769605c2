// Package contract holds the golden answers that every service is checked against, and the text
// that some of them are made of. README.md is the prose; internal/service does the checking.
package contract

import "embed"

// Files are all golden answers and lorem.txt; openapi.yaml describes them for people.
//
//go:embed hello.yaml http.yaml compute.yaml petclinic.yaml grpc/*.yaml lorem.txt
var Files embed.FS
