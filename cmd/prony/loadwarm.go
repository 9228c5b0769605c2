package main

import (
	"context"
	"fmt"
	"time"

	"prony/internal/cli"
	"prony/internal/driver"
)

// steadyMost is how long a warm-up waits for a steady rate: JVMs take up to half a minute.
const steadyMost = time.Minute

// warming is the warm-up that was asked for; 0: none.
func (o *offer) warming() (most time.Duration, steady bool, err error) {
	switch o.warmup {
	case "":
		return 0, false, nil
	case "steady":
		return steadyMost, true, nil
	}
	most, err = time.ParseDuration(o.warmup)
	if err != nil || most <= 0 {
		err = cli.Usagef("--warmup %q: want steady, or some time, as 30s", o.warmup)
	}
	return most, false, err
}

// warm loads the server until it is warm, where that was asked for, and says what was done.
func (a *app) warm(ctx context.Context, o *offer) error {
	most, steady, err := o.warming()
	if err != nil || most == 0 {
		return err
	}
	if o.warmed, err = driver.WarmUp(ctx, o.by.Offer, o.spec, most, steady); err != nil {
		return fmt.Errorf("warm up %s: %w", o.url, err)
	}
	w := &o.warmed
	line := fmt.Sprintf("warmed up for %v with %d requests, ",
		time.Duration(w.DurationNs).Round(100*time.Millisecond), w.Requests)
	if w.Steady {
		line += fmt.Sprintf("steady after %v", time.Duration(w.SteadyAtNs))
	} else {
		line += "and not steady: a longer --warmup may help"
	}
	a.say(line)
	return nil
}
