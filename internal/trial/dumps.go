package trial

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"prony.example/internal/suite"
	"prony.example/internal/trial/processes"
	"prony.example/record"
)

// dumpDir is the folder of heap dumps in a run's folder. dumpsMost limits what it contains.
const (
	dumpDir   = "dumps"
	dumpsMost = 2 << 30
)

// mayDump makes a folder into which JVMs and native images of Java write their heap if they run out
// of memory. If the dumps of earlier trials need all the space, there is none. Pods have none:
// their namespace may forbid folders of the node.
func (f *life) mayDump(o *processes.Order) error {
	java := f.onJVM() || f.trial.Subject.Service.Language == "Java"
	if !java || suite.Pods(f.trial.Launcher) ||
		dumped(filepath.Join(f.lab.Dir, dumpDir)) >= dumpsMost {
		return nil
	}
	dir, err := filepath.Abs(filepath.Join(f.lab.Dir, dumpDir, f.trial.ID))
	if err != nil {
		return err
	}
	o.Dumps, f.dumps = dir, dir
	return os.MkdirAll(dir, 0o755)
}

// dumped returns the size of a folder with its files, in bytes. What cannot be read counts as 0.
func dumped(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}

// collectDumps records the dumps of the ended service, removes those beyond the limit, and removes
// folders without dumps.
func (f *life) collectDumps() error {
	if f.dumps == "" {
		return nil
	}
	files, err := os.ReadDir(f.dumps)
	if err != nil {
		return fmt.Errorf("read the service's dumps: %w", err)
	}
	var errs []error
	for _, file := range files {
		info, err := file.Info()
		if err != nil || !info.Mode().IsRegular() { // only the JVM's own files
			continue
		}
		d := record.Dump{File: filepath.Join(dumpDir, f.trial.ID, file.Name()), Bytes: info.Size()}
		if dumped(filepath.Dir(f.dumps)) > dumpsMost {
			d.Removed = true
			errs = append(errs, os.Remove(filepath.Join(f.dumps, file.Name())))
		}
		f.rec.Dumps = append(f.rec.Dumps, d)
	}
	for _, dir := range []string{f.dumps, filepath.Dir(f.dumps)} {
		_ = os.Remove(dir) // fails if it has files
	}
	f.nameDumps()
	return errors.Join(errs...)
}

// nameDumps adds the first dump to the trial's failure.
func (f *life) nameDumps() {
	if f.rec.Failure == nil || len(f.rec.Dumps) == 0 {
		return
	}
	d := f.rec.Dumps[0]
	if d.Removed {
		f.rec.Failure.Error += fmt.Sprintf("; the JVM's dump of %d bytes was removed, because the "+
			"dumps of a run have at most %d bytes", d.Bytes, int64(dumpsMost))
		return
	}
	f.rec.Failure.Error += "; the JVM left a dump: " + filepath.Join(f.lab.Dir, d.File)
}
