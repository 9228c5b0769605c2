package record

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"prony.example/internal/base/files"
	"prony.example/internal/base/jsontree"
)

// ScheduleFile is in the folder of a run with a time limit.
const ScheduleFile = "schedule.json"

// Schedule describes how a run with a time limit spent its time: the rule by which comparisons were
// decided, and each look at them. stats.Sequence has the rule.
type Schedule struct {
	ForNs   int64   `json:"forNs"`   // requested
	SpentNs int64   `json:"spentNs"` // from the first trial on
	Early   float64 `json:"early"`   // error probability of all looks together
	Late    float64 `json:"late"`    // error probability of the final table
	Same    float64 `json:"same"`    // an irrelevant difference
	Looks   []Look  `json:"looks,omitempty"`
	Ended   string  `json:"ended,omitempty"` // why: "time", "decided" or "all blocks"
	Next    *Next   `json:"next,omitempty"`  // what more time would give
}

// Look is one look at the comparisons, after a block.
type Look struct {
	Block    int       `json:"block"`
	AtNs     int64     `json:"atNs"`     // from the first trial on
	Fraction float64   `json:"fraction"` // of the requested time
	Level    float64   `json:"level"`    // error probability of this look; 0: it decides nothing
	Decided  []Decided `json:"decided,omitempty"`
	Open     int       `json:"open"` // undecided comparisons
}

// Decided is a comparison that gets no further blocks.
type Decided struct {
	Scenario string `json:"scenario"`
	A        string `json:"a"`
	B        string `json:"b"`
	As       string `json:"as"` // "apart" or "alike"
}

// Next describes what more time would give.
type Next struct {
	ForNs    int64    `json:"forNs"`
	Blocks   int      `json:"blocks"`  // of Targets
	BlockNs  int64    `json:"blockNs"` // duration of one block
	Targets  []string `json:"targets"`
	Open     int      `json:"open"`               // undecided comparisons; 0: all are decided
	Resolves float64  `json:"resolves,omitempty"` // median detectable difference now
	Would    float64  `json:"would,omitempty"`    // the same with more time, as shares; 0: unknown
}

// SaveSchedule writes the schedule to the run's folder and replaces an existing one.
func SaveSchedule(dir string, s Schedule) error {
	if err := putJSON(filepath.Join(dir, ScheduleFile), s); err != nil {
		return fmt.Errorf("save how the run's time is spent: %w", err)
	}
	return nil
}

// ReadSchedule reads the schedule. It returns nil if the run has none.
func ReadSchedule(dir string) (*Schedule, error) {
	b, err := files.Kept(filepath.Join(dir, ScheduleFile), files.Page)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var s Schedule
	if err == nil {
		err = jsontree.Decode(b, &s)
	}
	if err != nil {
		return nil, fmt.Errorf("read how the run's time was spent: %w", err)
	}
	return &s, nil
}
