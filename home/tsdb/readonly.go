package tsdb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/wlog"
)

// OpenReadOnly opens the data stored in a folder for queries, as it is now. It does not write
// there, and works while another process writes.
//
// Prometheus' own read-only database replays the log for every query, and fails if its end is being
// written. OpenReadOnly instead copies the logs and links the finished files once, and cuts off an
// incomplete end of the copy. Until Close, this takes the logs' size in the folder for temporary
// files.
func OpenReadOnly(dir string, o Options) (*Store, error) {
	if _, err := os.Stat(filepath.Join(dir, "wal")); err != nil {
		return nil, fmt.Errorf("read metrics: %w; repeat the run with --telemetry", err)
	}
	for range copyAttempts {
		s, err := openCopy(dir, o)
		if err == nil {
			return s, nil
		}
		if !errors.Is(err, fs.ErrNotExist) { // otherwise the writer has removed a file meanwhile
			return nil, err
		}
	}
	return nil, fmt.Errorf("read metrics in %s: files disappeared while they were read; try "+
		"again after the writing process has ended", dir)
}

const copyAttempts = 5

func openCopy(dir string, o Options) (*Store, error) {
	tmp, err := os.MkdirTemp("", "prony-metrics-")
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	s := &Store{o: o.filled(), dir: dir, dropped: map[string]int64{}, series: &seriesBound{},
		clean: func() error { return os.RemoveAll(tmp) }}
	if err = mirror(dir, tmp); err != nil {
		err = fmt.Errorf("read metrics: %w", err)
	} else if s.families, err = readFamilies(dir); err == nil {
		err = s.openDB(tmp)
	}
	if err != nil {
		return nil, errors.Join(err, s.clean())
	}
	s.db.DisableCompactions()
	return s, nil
}

// mirror makes a copy of a database's folder. It copies logs first: data that moves from them into
// chunks or blocks meanwhile is then duplicated, which does no harm.
func mirror(dir, tmp string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for _, log := range []string{"wal", wlog.WblDirName} {
		err := os.CopyFS(filepath.Join(tmp, log), os.DirFS(filepath.Join(abs, log)))
		if err != nil && !(log == wlog.WblDirName && errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	entries, err := os.ReadDir(abs)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() || strings.HasSuffix(e.Name(), ".tmp") || e.Name() == "wal" ||
			e.Name() == wlog.WblDirName {
			continue
		}
		if err := link(filepath.Join(abs, e.Name()), filepath.Join(tmp, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// link recreates a folder's tree with links to its files.
func link(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		there := to + strings.TrimPrefix(path, from)
		if e.IsDir() {
			return os.MkdirAll(there, 0o755)
		}
		return os.Symlink(path, there)
	})
}

var _ tsdb.SeriesLifecycleCallback = (*seriesBound)(nil)
