// Package contract contains the golden responses that every service is checked against, and the
// text of which some of them consist. README.md describes them; internal/service checks them.
package contract

import "embed"

// Files are all golden responses and lorem.txt. openapi.yaml describes them for readers.
//
//go:embed hello.yaml http.yaml compute.yaml petclinic.yaml grpc/*.yaml lorem.txt
var Files embed.FS
