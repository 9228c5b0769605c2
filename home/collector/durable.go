package collector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"prony.example/home/journal"
	"prony.example/home/otlp"
	"prony.example/internal/telemetry"
	"prony.example/record"
)

// JournalFile holds accepted spans and log records of trials under way, and what is known of these
// trials. Metrics have their own write-ahead log. It is removed at a regular end.
const JournalFile = "journal"

// Kinds of the journal's records, besides those of the stores.
const (
	stateRecord  = 'S' // the first; the stores' records follow
	beginRecord  = 'B' // telemetry.Under
	scrapeRecord = 'P' // telemetry.Trial
	markRecord   = 'M' // telemetry.Mark
	endRecord    = 'E' // ending
	tracesRecord = 'T' // in OTLP
	logsRecord   = 'L' // in OTLP
)

// renewBytes is the size above which the journal is replaced by the stores' present state. That
// blocks arrivals for as long as it takes to write the state, so it must be rare.
const renewBytes = 256 << 20

// stateVersion is the version of the journal's records.
const stateVersion = 1

// state is the beginning of a journal.
type state struct {
	Version int               `json:"version"`
	Counts  record.Telemetry  `json:"counts"` // without those of the stores
	Trials  []telemetry.Under `json:"trials"`
}

// ending precedes the writes of Stores.End, so that a collector that is killed during them writes
// nothing twice.
type ending struct {
	Trials []string         `json:"trials"`
	Sizes  map[string]int64 `json:"sizes"`            // of the stores' files by name
	Closed bool             `json:"closed,omitempty"` // the trials go on with the next collector
}

// accept writes telemetry into the journal before its sender gets an answer.
func (h *Home) accept(kind byte, encode func() ([]byte, error)) error {
	if h.journal == nil {
		return nil
	}
	data, err := encode()
	if err == nil {
		err = h.journal.Append(kind, data)
	}
	if isFull(err) {
		err = fmt.Errorf("%w; free some space", err)
	}
	if err != nil {
		return status.Errorf(codes.Unavailable, "cannot store telemetry: %v", err)
	}
	return nil
}

// log writes an event of a trial into the journal.
func (h *Home) log(kind byte, v any) error {
	if h.journal == nil {
		return nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return h.journal.Append(kind, data)
}

// logEnd announces that the stores will write what they have of trials.
func (h *Home) logEnd(closed bool, trials ...string) error {
	sizes, err := sizesOf(h.stores.Files())
	if err != nil {
		return err
	}
	return h.log(endRecord, ending{Trials: trials, Sizes: sizes, Closed: closed})
}

func sizesOf(files []string) (map[string]int64, error) {
	sizes := map[string]int64{}
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		sizes[filepath.Base(name)] = info.Size()
	}
	return sizes, nil
}

// cutBack removes what was appended to files.
func cutBack(files []string, sizes map[string]int64) error {
	var errs []error
	for _, name := range files {
		info, err := os.Stat(name)
		if size, ok := sizes[filepath.Base(name)]; ok && err == nil && info.Size() > size {
			err = os.Truncate(name, size)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// renew replaces the journal by the present state.
func (h *Home) renew() error {
	if h.journal == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var err error
	h.intake.Still(func() {
		c := h.intake.Counts()
		err = h.journal.Renew(h.save(record.Telemetry{Signals: c.Signals, Sources: c.Voices}))
	})
	return err
}

// save returns a function that saves the present state. The caller holds mu.
func (h *Home) save(now record.Telemetry) func(func(byte, []byte) error) error {
	return func(put func(byte, []byte) error) error {
		s := state{Version: stateVersion, Counts: plus(h.base, now)}
		for _, u := range h.under {
			s.Trials = append(s.Trials, *u)
		}
		data, err := json.Marshal(s)
		if err == nil {
			err = put(stateRecord, data)
		}
		if err != nil {
			return err
		}
		return h.stores.Save(put)
	}
}

// secure syncs the journal once a second, and renews it if it is large or could not be synced.
// While that fails, the reason is in the stats.
func (h *Home) secure() {
	if h.journal == nil {
		return
	}
	size, err := h.journal.Size()
	switch {
	case err != nil || size > renewBytes:
		err = h.renew()
	case size != h.synced:
		h.synced, err = size, h.journal.Sync()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trouble = ""
	if err != nil {
		h.trouble = "telemetry is not stored: " + err.Error()
	}
}

// isFull reports whether a disk has no space left, which may change.
func isFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// recovery reads the journal of an earlier collector that was killed.
type recovery struct {
	h      *Home
	replay otlp.Replay
	counts record.Telemetry
	found  bool
	ended  bool // ends of trials were repeated
	bad    int  // records that could not be restored
}

// recoverTrials restores the trials under way, from the journal or, if the earlier collector ended
// regularly, from its counts.
func (h *Home) recoverTrials(before *telemetry.Stats) error {
	if h.c.ForwardOnly {
		h.resumeTrials(before, "")
		return nil
	}
	r := &recovery{h: h, replay: otlp.NewReplay()}
	j, cut, err := journal.Open(filepath.Join(h.c.Dir, JournalFile), r.restore)
	if err != nil {
		return err
	}
	h.journal = j
	why := ""
	if cut > 0 {
		h.torn++
		why = fmt.Sprintf("the last %d bytes of its journal were incomplete", cut)
	}
	if r.bad > 0 {
		why = telemetry.Also(why, fmt.Sprintf("%d records of its journal were not readable", r.bad))
	}
	if r.found {
		c := r.replay.Counts()
		h.base = atLeast(plus(r.counts, record.Telemetry{Signals: c.Signals, Sources: c.Voices}),
			h.base)
		for _, u := range h.under {
			u.Partial = telemetry.Also(u.Partial,
				"the collector was killed and started again during the trial")
			u.Partial = telemetry.Also(u.Partial, why)
		}
	} else {
		h.resumeTrials(before, why)
	}
	if r.found && !r.ended {
		return nil
	}
	return h.journal.Renew(h.save(record.Telemetry{}))
}

// atLeast returns counts that are at least those of the stats, which may be a second older than the
// journal, and newer for metrics. What the stores kept is not among the journal's counts.
func atLeast(journal, stats record.Telemetry) record.Telemetry {
	out := combine(journal, stats, func(x, y int64) int64 { return max(x, y) })
	for i, s := range out.Signals {
		at := slices.IndexFunc(journal.Signals, func(j record.Signal) bool {
			return j.Name == s.Name
		})
		if at >= 0 && s.Name != record.Points {
			out.Signals[i].Kept = journal.Signals[at].Kept
			out.Signals[i].Dropped = journal.Signals[at].Dropped
		}
	}
	return out
}

// restore counts records that are not readable, and continues.
func (r *recovery) restore(kind byte, data []byte) error {
	if kind == stateRecord {
		return decoded(data, r.start)
	}
	if r.one(kind, data) != nil {
		r.bad++
	}
	return nil
}

func (r *recovery) one(kind byte, data []byte) error {
	switch kind {
	case beginRecord:
		return decoded(data, r.begin)
	case scrapeRecord:
		return decoded(data, r.scrape)
	case markRecord:
		return decoded(data, r.mark)
	case endRecord:
		return decoded(data, r.end)
	case tracesRecord:
		d, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(data)
		if err != nil {
			return err
		}
		r.replay.Traces(d)
		return r.h.stores.ConsumeTraces(context.Background(), d)
	case logsRecord:
		d, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(data)
		if err != nil {
			return err
		}
		r.replay.Logs(d)
		return r.h.stores.ConsumeLogs(context.Background(), d)
	}
	return r.h.stores.Load(kind, data)
}

func decoded[T any](data []byte, do func(T) error) error {
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	return do(v)
}

func (r *recovery) start(s state) error {
	if s.Version != stateVersion {
		return fmt.Errorf("it has version %d, but this program writes version %d; use another "+
			"folder", s.Version, stateVersion)
	}
	r.found, r.counts = true, s.Counts
	for _, u := range s.Trials {
		_ = r.begin(u) // its error is in the trial's report
	}
	return nil
}

func (r *recovery) begin(u telemetry.Under) error {
	r.h.under = append(r.h.under, &u)
	r.h.again(&u)
	return nil
}

func (r *recovery) scrape(t telemetry.Trial) error {
	u := r.h.find(t.ID)
	if u == nil {
		return fmt.Errorf("trial %q is not running", t.ID)
	}
	u.Trial.Scrape = t.Scrape
	return r.h.stores.Scrape(u.Trial)
}

func (r *recovery) mark(m telemetry.Mark) error {
	u := r.h.find(m.Trial)
	if u == nil {
		return fmt.Errorf("trial %q is not running", m.Trial)
	}
	u.Marks = append(u.Marks, m)
	r.h.open.turn(u.Trial, m)
	return r.h.stores.Mark(m)
}

// end repeats the end of trials: it removes what the earlier collector may have written of them.
func (r *recovery) end(e ending) error {
	h := r.h
	r.ended = true
	errs := []error{cutBack(h.stores.Files(), e.Sizes)}
	for _, id := range e.Trials {
		u := h.find(id)
		if u == nil {
			continue
		}
		_, _, err := h.stores.End(id)
		errs = append(errs, err)
		if e.Closed {
			h.again(u)
		} else {
			h.under = slices.DeleteFunc(h.under, func(o *telemetry.Under) bool { return o == u })
		}
	}
	return errors.Join(errs...)
}
