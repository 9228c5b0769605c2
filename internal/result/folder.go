package result

import (
	"fmt"
	"os"
	"path/filepath"

	"prony/internal/file"
)

// NewFolder names a run's folder by its start; runs that begin within a second get a number.
func NewFolder(results, start string) (id, dir string) {
	id = start
	for n := 2; ; n++ {
		dir = filepath.Join(results, id)
		if _, err := os.Stat(dir); err != nil {
			return id, dir
		}
		id = fmt.Sprintf("%s-%d", start, n)
	}
}

// Kept is the folder of all that is kept beside a user's own files.
const Kept = ".prony"

// Keep makes such a folder, and has git ignore it.
func Keep(kept string) error {
	if err := os.MkdirAll(kept, 0o755); err != nil {
		return err
	}
	ignore := filepath.Join(kept, ".gitignore")
	if _, err := os.Stat(ignore); err == nil {
		return nil
	}
	return file.Put(ignore, []byte("*\n"))
}

// Samples are the probe's readings during one load, as columns; series/TRIAL.LOAD.json holds them.
type Samples struct {
	Trial    string    `json:"trial"`
	Load     string    `json:"load"`
	TimeNs   []int64   `json:"timeNs"`   // from about the window's opening
	CPUCores []float64 `json:"cpuCores"` // processors the service used since the sample before
	RSSBytes []int64   `json:"rssBytes"`
	Threads  []int64   `json:"threads"`
}
