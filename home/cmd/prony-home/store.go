package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"prony.example/home/bucket"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/telemetry/flags"
)

// store copies runs to or from a bucket.
func (p *program) store(ctx context.Context, s flags.Store) error {
	b, err := bucket.Open(s.Place, os.Getenv, func(line string) { fmt.Fprintln(p.stdout, line) })
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if s.Push {
		return b.Push(ctx, s.Dir)
	}
	pick := bucket.Pick{Newest: s.Newest, LastGood: s.LastGood}
	err = b.Pull(ctx, s.Dir, pick)
	if s.Every == 0 || err != nil {
		return err
	}
	again := time.NewTicker(s.Every)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
		}
		// If the bucket is unavailable for a while, pulled runs stay.
		if err := b.Pull(ctx, s.Dir, pick); err != nil && ctx.Err() == nil {
			fmt.Fprintf(p.stderr, "prony: %s\n", cmdlog.Hush(err.Error()))
		}
	}
}
