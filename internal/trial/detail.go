package trial

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"prony/internal/file"
	"prony/internal/load"
	"prony/internal/summary"
)

// detail is something that belongs to a trial but not into its record: series and histograms for
// drilling down. Losing it loses no result.
type detail struct {
	name      string
	value     any             // saved as JSON in series/TRIAL.NAME.json
	intervals []load.Interval // saved as an HdrHistogram log in hdr/TRIAL.NAME.hlog
}

func (f *life) saveDetails() error {
	for _, d := range f.details {
		var err error
		if d.intervals != nil {
			err = summary.SaveHLog(f.lab.Dir, f.trial.ID, d.name, d.intervals)
		} else {
			err = f.saveJSON(d)
		}
		if err != nil {
			return fmt.Errorf("save %s of %s: %w", d.name, f.trial.ID, err)
		}
	}
	return nil
}

func (f *life) saveJSON(d detail) error {
	b, err := json.Marshal(d.value)
	if err != nil {
		return err
	}
	dir := filepath.Join(f.lab.Dir, "series")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return file.Put(filepath.Join(dir, f.trial.ID+"."+d.name+".json"), append(b, '\n'))
}
