package logstore

import (
	"encoding/json"
	"fmt"
	"slices"

	"prony.example/home/spanstore"
	"prony.example/internal/telemetry/logs"
)

// Kinds of the records of a saved store, in the order in which Save writes them. They differ from
// those of package spanstore.
const (
	savedCounts = 'D' // of all trials, in JSON
	savedTrials = 'd' // of one trial, in JSON
	savedEntry  = 'l' // a record that has a place or is held, in JSON
)

type saved struct {
	Record logs.Record `json:"record"`
	Level  int         `json:"level"`
	Hash   uint64      `json:"hash"`
	Bytes  int64       `json:"bytes"`
	Held   bool        `json:"held,omitempty"`
	Placed bool        `json:"placed,omitempty"`
}

// Save passes on everything that the store has in memory of trials under way, so that Load can
// restore it. It blocks arrivals meanwhile.
func (s *Store) Save(put spanstore.Put) error {
	s.trials.Lock()
	defer s.trials.Unlock()
	if err := s.trials.SaveCounts(put, savedCounts, savedTrials); err != nil {
		return err
	}
	for _, t := range s.trials.Trials {
		entries := slices.Clone(t.held)
		for _, e := range t.Items() {
			if e.In&isTraced == 0 { // the others are in held
				entries = append(entries, e)
			}
		}
		for _, e := range entries {
			if err := put.JSON(savedEntry, saved{e.record, e.level, e.hash, e.Bytes,
				e.In&isTraced != 0, e.In&(isTraced-1) != 0}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Load restores a record of Save. It ignores other kinds. The trials must have begun again, and
// records must come in the order of Save, because counts are restored before items.
func (s *Store) Load(kind byte, data []byte) error {
	s.trials.Lock()
	defer s.trials.Unlock()
	switch kind {
	case savedCounts:
		return s.trials.LoadEnded(data)
	case savedTrials:
		return s.trials.LoadUnder(data)
	case savedEntry:
		return s.loadEntry(data)
	}
	return nil
}

func (s *Store) loadEntry(data []byte) error {
	var l saved
	if err := json.Unmarshal(data, &l); err != nil {
		return err
	}
	t := s.trials.Find(l.Record.Trial)
	if t == nil {
		return fmt.Errorf("trial %q has not begun", l.Record.Trial)
	}
	e := &entry{Seat: spanstore.Seat{Bytes: l.Bytes}, record: l.Record, ns: l.Record.Ns,
		level: l.Level, hash: l.Hash}
	if l.Record.TraceID != "" {
		var err error
		if e.trace, err = spanstore.ParseID(l.Record.TraceID); err != nil {
			return err
		}
	}
	if l.Held {
		e.In |= isTraced
		t.held = append(t.held, e)
		s.heldBytes += e.Bytes
	}
	if l.Placed {
		s.trials.Keep(t, t.Group(t.Windows.At(e.ns)), e)
	}
	return nil
}

// Files returns the names of the files to which End appends.
func (s *Store) Files() []string { return []string{s.file.Name()} }
