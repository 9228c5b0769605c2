package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ScheduleFile is in the folder of a run that went on for a time.
const ScheduleFile = "schedule.json"

// Schedule is how such a run has spent its time: the rule by which comparisons were decided, and
// each look at them. stats.Sequence has the rule.
type Schedule struct {
	ForNs   int64   `json:"forNs"`   // asked for
	SpentNs int64   `json:"spentNs"` // from the first trial on
	Early   float64 `json:"early"`   // error of all looks together
	Late    float64 `json:"late"`    // of the table in the end
	Same    float64 `json:"same"`    // a difference that nobody asks about
	Looks   []Look  `json:"looks,omitempty"`
	Ended   string  `json:"ended,omitempty"` // why: "time", "decided" or "all blocks"
	Next    *Next   `json:"next,omitempty"`  // what more time would buy
}

// Look is one look at the comparisons, after a block.
type Look struct {
	Block    int       `json:"block"`
	AtNs     int64     `json:"atNs"`     // from the first trial on
	Fraction float64   `json:"fraction"` // of the time asked for
	Level    float64   `json:"level"`    // the error that it may make; 0: it tells none apart
	Decided  []Decided `json:"decided,omitempty"`
	Open     int       `json:"open"` // comparisons
}

// Decided is a comparison that gets no further blocks.
type Decided struct {
	Scenario string `json:"scenario"`
	A        string `json:"a"`
	B        string `json:"b"`
	As       string `json:"as"` // "apart" or "alike"
}

// Next is what more time would buy.
type Next struct {
	ForNs    int64    `json:"forNs"`
	Blocks   int      `json:"blocks"`  // of Targets
	BlockNs  int64    `json:"blockNs"` // what one takes
	Targets  []string `json:"targets"`
	Open     int      `json:"open"`               // comparisons; 0: all are decided
	Resolves float64  `json:"resolves,omitempty"` // the median of the differences found now
	Would    float64  `json:"would,omitempty"`    // and then, as shares; 0: unknown
}

// SaveSchedule writes it into the run's folder, over what was there.
func SaveSchedule(dir string, s Schedule) error {
	if err := putJSON(filepath.Join(dir, ScheduleFile), s); err != nil {
		return fmt.Errorf("save how the run's time is spent: %w", err)
	}
	return nil
}

// ReadSchedule gives nil where the run had none.
func ReadSchedule(dir string) (*Schedule, error) {
	b, err := os.ReadFile(filepath.Join(dir, ScheduleFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var s Schedule
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		return nil, fmt.Errorf("read how the run's time was spent: %w", err)
	}
	return &s, nil
}
