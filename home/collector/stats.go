package collector

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/files"
	"prony.example/internal/telemetry"
	"prony.example/record"
)

// readStats reads the counts of an earlier collector in the folder; nil if there are none.
func readStats(name string) (*telemetry.Stats, error) {
	data, err := files.Kept(name, files.Page)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the counts of an earlier collector: %w", err)
	}
	var s telemetry.Stats
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("read the counts of an earlier collector: %s: %w; move the folder "+
			"away to begin with new counts", name, err)
	}
	if s.Version != telemetry.StatsVersion {
		return nil, fmt.Errorf("read the counts of an earlier collector: %s has version %d, but "+
			"this program writes version %d; use another folder",
			name, s.Version, telemetry.StatsVersion)
	}
	return &s, nil
}

// write writes stats.json atomically, so that a reader or a next collector never finds a part of
// it.
func (h *Home) write(ctx context.Context) error {
	h.writing.Lock()
	defer h.writing.Unlock()
	data, err := json.MarshalIndent(h.stats(ctx), "", "  ")
	if err != nil {
		return fmt.Errorf("write the counts: %w", err)
	}
	name := filepath.Join(h.c.Dir, telemetry.StatsFile)
	if err = os.WriteFile(name+".new", append(data, '\n'), 0o644); err == nil {
		err = os.Rename(name+".new", name)
	}
	if err != nil {
		return fmt.Errorf("write the counts: %w", err)
	}
	return nil
}

// stats returns the present counts. The caller holds writing.
func (h *Home) stats(ctx context.Context) telemetry.Stats {
	c := h.intake.Counts()
	h.mu.Lock()
	s := telemetry.Stats{
		Version: telemetry.StatsVersion, Broken: h.broken, Torn: h.torn, Ended: h.ended, Odd: c.Odd,
	}
	for _, u := range h.under {
		s.Trials = append(s.Trials, *u)
	}
	s.Odd.Closed = h.intake.Closed()
	if h.guard != nil {
		s.Odd.Closed += int64(h.guard.Refused().Total())
	}
	base, trouble := h.base, h.trouble
	h.mu.Unlock()
	s.Telemetry = plus(base, h.counted())
	if s.Broken > 0 {
		s.Telemetry.Partial = fmt.Sprintf("the collector was killed %d times", s.Broken)
	}
	if trouble != "" {
		s.Telemetry.Partial = telemetry.Also(s.Telemetry.Partial, trouble)
	}
	if h.forward != nil {
		var err error
		if s.Forwarded, err = h.forward.Counts(ctx); err != nil {
			s.Telemetry.Partial = telemetry.Also(s.Telemetry.Partial, err.Error())
		}
	}
	return s
}

// counted returns the counts of this process, without those of earlier ones.
func (h *Home) counted() record.Telemetry {
	c := h.intake.Counts()
	t := record.Telemetry{Signals: c.Signals, Sources: c.Voices, Collector: cost()}
	fill(t.Signals, h.stores.Fates(), h.c.ForwardOnly)
	return t
}

// fill adds to the signals what the stores kept and dropped. The rest is still being processed.
func fill(signals []record.Signal, f Outcomes, only bool) {
	for i := range signals {
		s := &signals[i]
		switch {
		case only:
			s.Kept, s.Dropped = 0, s.Received
		case s.Name == record.Points:
			s.Dropped = min(f.PointsDropped, s.Received)
			s.Kept = s.Received - s.Dropped
		case s.Name == record.Spans:
			s.Kept, s.Dropped = f.SpansKept, f.SpansDropped
		case s.Name == record.Logs:
			s.Kept, s.Dropped = f.LogsKept, f.LogsDropped
		}
	}
}

// cost returns the processor time of this process (getrusage(2)) and its memory (the second field
// of proc_pid_statm(5), in pages).
func cost() record.CollectorCost {
	var out record.CollectorCost
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) == nil { // it cannot fail for the own process
		out.CPUNs = u.Utime.Nano() + u.Stime.Nano()
	}
	data, err := os.ReadFile("/proc/self/statm")
	if f := strings.Fields(string(data)); err == nil && len(f) > 1 {
		if pages, err := strconv.ParseInt(f[1], 10, 64); err == nil {
			out.RSSBytes = pages * int64(os.Getpagesize())
		}
	}
	return out
}

// plus adds counts; the memory is that of b.
func plus(a, b record.Telemetry) record.Telemetry {
	return combine(a, b, func(x, y int64) int64 { return x + y })
}

// minus returns the counts between b, the earlier, and a.
func minus(a, b record.Telemetry) record.Telemetry {
	out := combine(a, b, func(x, y int64) int64 { return x - y })
	out.Collector.RSSBytes = a.Collector.RSSBytes
	silent := func(v record.TelemetrySource) bool {
		return v.Spans+v.Points+v.Logs == 0 &&
			v.LostSpans <= 0
	}
	out.Sources = slices.DeleteFunc(out.Sources, silent)
	return out
}

func combine(a, b record.Telemetry, f func(x, y int64) int64) record.Telemetry {
	signals := map[string]record.Signal{}
	voices := map[string]record.TelemetrySource{}
	for _, s := range a.Signals {
		signals[s.Name] = s
	}
	for _, s := range b.Signals {
		x := signals[s.Name]
		signals[s.Name] = record.Signal{
			Name: s.Name, Requests: f(x.Requests, s.Requests), Received: f(x.Received, s.Received),
			Refused: f(x.Refused, s.Refused), Dropped: f(x.Dropped, s.Dropped),
			Kept: f(x.Kept, s.Kept), Bytes: f(x.Bytes, s.Bytes),
		}
	}
	for _, v := range a.Sources {
		voices[v.Service] = v
	}
	for _, v := range b.Sources {
		x, ok := voices[v.Service]
		if !ok {
			x.LostSpans = -1
		}
		lost := int64(-1)
		if x.LostSpans >= 0 || v.LostSpans >= 0 {
			lost = f(max(x.LostSpans, 0), max(v.LostSpans, 0))
		}
		voices[v.Service] = record.TelemetrySource{
			Service: v.Service, Spans: f(x.Spans, v.Spans), Points: f(x.Points, v.Points),
			Logs: f(x.Logs, v.Logs), Bytes: f(x.Bytes, v.Bytes), LostSpans: lost,
		}
	}
	out := record.Telemetry{
		Signals: slices.SortedFunc(maps.Values(signals),
			func(a, b record.Signal) int { return cmp.Compare(a.Name, b.Name) }),
		Sources: slices.SortedFunc(maps.Values(voices),
			func(a, b record.TelemetrySource) int { return cmp.Compare(a.Service, b.Service) }),
	}
	out.Collector.CPUNs = f(a.Collector.CPUNs, b.Collector.CPUNs)
	out.Collector.RSSBytes = b.Collector.RSSBytes
	return out
}

// resume continues the counts of an earlier collector in the folder.
func (h *Home) resume(before *telemetry.Stats) {
	if before == nil {
		return
	}
	h.base, h.broken, h.torn = before.Telemetry, before.Broken, before.Torn
	h.base.Partial = ""
	if !before.Ended {
		h.broken++
	}
}

// resumeTrials continues the trials of an earlier collector without a journal. Of a collector that
// was killed, what was in its memory is lost.
func (h *Home) resumeTrials(before *telemetry.Stats, journal string) {
	if before == nil {
		return
	}
	why := "the collector was stopped and started again during the trial"
	if !before.Ended {
		why = "the collector was killed and started again during the trial, so data in its " +
			"memory is lost"
	}
	for _, u := range before.Trials {
		u.Partial = telemetry.Also(telemetry.Also(u.Partial, why), journal)
		h.under = append(h.under, &u)
		h.again(&u)
	}
}

// keep writes the counts as they grow, and repeats open phases: a series without samples ends after
// five minutes, and a load may last longer.
func (h *Home) keep(ctx context.Context) {
	const (
		every = time.Second
		again = 15 // times every
	)
	var last int64
	n := 0
	for range clock.Every(ctx, every) {
		n++
		h.secure()
		var err error
		if at := h.intake.Last(); at != last {
			last, err = at, h.write(ctx)
		}
		if n%again == 0 && err == nil {
			err = h.tellPhases(ctx)
		}
		if err != nil && !isFull(err) {
			select {
			case h.failed <- err: // the folder is missing
			default:
			}
		}
	}
}
