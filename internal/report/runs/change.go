package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"prony.example/internal/base/files"
	"prony.example/record"
)

// Bounds of labels.
const (
	maxLabels    = 4 << 10 // bytes of all labels, as in prony run
	maxLabelName = 64      // bytes of a name
)

// ErrUnderWay reports that a run is still being measured.
var ErrUnderWay = errors.New("the run is under way")

// ErrLabels reports that labels are not valid.
var ErrLabels = errors.New("labels")

// CheckLabels reports what is wrong with labels: each needs a name without an equals sign, and all
// together must be text of a few KiB.
func CheckLabels(labels map[string]string) error {
	size := 0
	for name, value := range labels {
		size += len(name) + len(value) + 8 // as in JSON
		switch {
		case name == "" || len(name) > maxLabelName || strings.Contains(name, "="):
			return fmt.Errorf("%w: %.80q is not a name: a label's name has 1 to %d bytes and no =",
				ErrLabels,
				name, maxLabelName)
		case !printable(name) || !printable(value):
			return fmt.Errorf("%w: %.80q: a label must be one line of printable text",
				ErrLabels, name)
		}
	}
	if size > maxLabels {
		return fmt.Errorf("%w: all labels together have %d bytes, but at most %d are allowed",
			ErrLabels, size, maxLabels)
	}
	return nil
}

func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// Label replaces the labels of a run. They are stored in a separate file, so that the run's head
// stays as it was written.
func (s *Shelf) Label(id string, labels map[string]string) error {
	dir, err := s.Path(id)
	if err != nil {
		return err
	}
	if err := CheckLabels(labels); err != nil {
		return err
	}
	if labels == nil {
		labels = map[string]string{}
	}
	b, err := json.MarshalIndent(labels, "", "  ")
	if err != nil {
		return fmt.Errorf("label run %s: %w", id, err)
	}
	return lay("label", dir, record.LabelsFile, append(b, '\n'))
}

// lay writes a file of a run's folder; it does not write through a link in its place.
func lay(verb, dir, name string, data []byte) error {
	id, path := filepath.Base(dir), filepath.Join(dir, name)
	if _, err := os.Lstat(path); err == nil && !isRegular(path) {
		return fmt.Errorf("%s run %s: the file %s of the run is not a regular file; remove it",
			verb, id, name)
	}
	if err := files.Put(path, data); err != nil {
		return fmt.Errorf("%s run %s: %w", verb, id, err)
	}
	return nil
}

// Reason writes the reason why a run under way is to end for the process that measures it, which
// puts it into all reports.
func (s *Shelf) Reason(id, why string) error {
	dir, err := s.Folder(id)
	if err != nil {
		return err
	}
	return lay("stop", dir, record.StopFile, []byte(why+"\n"))
}

// Remove deletes a run with its folder. It renames the folder first, so that the run exists
// completely or not at all, and removes links without following them. It refuses to delete a run
// under way.
func (s *Shelf) Remove(id string) error {
	dir, err := s.Path(id)
	if err != nil {
		return err
	}
	lab, err := s.Lab(id)
	if err != nil {
		return err
	}
	if lab != nil {
		return fmt.Errorf("remove run %s: %w in process %d; stop the process first",
			id, ErrUnderWay,
			lab.PID)
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return fmt.Errorf("remove run %s: %w", id, err)
	}
	defer func() { _ = root.Close() }() // nothing is written through it
	const prefix = ".removed-"          // no identifier has this prefix
	if err := root.RemoveAll(prefix + id); err != nil {
		return fmt.Errorf("remove run %s: %w", id, err) // leftovers of a run with that name
	}
	if err := root.Rename(filepath.Base(dir), prefix+id); err != nil {
		return fmt.Errorf("remove run %s: %w", id, err)
	}
	if err := root.RemoveAll(prefix + id); err != nil {
		return fmt.Errorf("remove run %s: %w; the remaining files are in %s", id, err,
			filepath.Join(s.dir, prefix+id))
	}
	return nil
}
