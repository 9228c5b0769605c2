package trial

import (
	"encoding/json"
	"fmt"
	"io"
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
			err = f.saveLog(d)
		} else {
			err = f.saveJSON(d)
		}
		if err != nil {
			return fmt.Errorf("save %s of %s: %w", d.name, f.trial.ID, err)
		}
	}
	return nil
}

func (f *life) file(folder, name string) (string, error) {
	dir := filepath.Join(f.lab.Dir, folder)
	return filepath.Join(dir, f.trial.ID+"."+name), os.MkdirAll(dir, 0o755)
}

func (f *life) saveJSON(d detail) error {
	b, err := json.Marshal(d.value)
	if err != nil {
		return err
	}
	path, err := f.file("series", d.name+".json")
	if err != nil {
		return err
	}
	return file.Put(path, append(b, '\n'))
}

// saveLog writes the interval histograms.
func (f *life) saveLog(d detail) error {
	path, err := f.file("hdr", d.name+".hlog")
	if err != nil {
		return err
	}
	return file.Write(path, func(w io.Writer) error {
		return summary.HLog(w, summary.HLogTitle(f.trial.ID), d.intervals)
	})
}
