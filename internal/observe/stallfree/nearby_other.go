//go:build !linux || portable

package stallfree

import (
	"context"

	"prony.example/load"
)

// Nearby is for Linux.
type Nearby struct{}

// WatchNearby watches nothing.
func WatchNearby(string, string, int, []int) *Nearby { return nil }

// Close does nothing.
func (*Nearby) Close() {}

// Offer offers a load.
func (*Nearby) Offer(ctx context.Context, s load.Spec, _ []float64,
	offer func(context.Context, load.Spec) (*load.Result, error)) (*load.Result, error) {
	return offer(ctx, s)
}
