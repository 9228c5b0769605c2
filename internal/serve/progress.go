package serve

import (
	"encoding/json"
	"errors"
	"io/fs"
	"strings"

	"prony/internal/result"
	"prony/internal/shelf"
)

// said is what the lab of a run has said so far, a line each; nothing where it keeps no progress.
func said(dir string) (string, error) {
	f, err := shelf.OpenIn(dir, result.ProgressFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // nothing was written
	var b strings.Builder
	_, err = result.ReadLines(result.ProgressFile, f, func(line []byte) error {
		var e result.Progress
		if json.Unmarshal(line, &e) != nil {
			return nil // the last line is being written
		}
		switch e.Kind {
		case result.Says, result.TrialEnds, result.Ends:
			b.WriteString(e.Text + "\n")
		}
		return nil
	})
	return b.String(), err
}
