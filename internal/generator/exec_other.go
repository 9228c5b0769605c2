//go:build !linux || portable

package generator

import (
	"context"
	"errors"
)

// run would run another tool in bounds that only Linux keeps.
func run(context.Context, command, string, []int) (*output, error) {
	return &output{}, errors.New("other load generators can be run only on Linux; use prony load")
}
