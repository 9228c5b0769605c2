//go:build !linux || portable

package generator

import (
	"context"
	"errors"
)

// run returns an error, because only Linux enforces its limits.
func run(context.Context, command, string, []int) (*output, error) {
	return &output{}, errors.New("other load generators can be run only on Linux; use prony load")
}
