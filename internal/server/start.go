package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/files"
	"prony.example/internal/report/runs"
	"prony.example/record"
)

// Bounds for the start of a run.
const (
	beginBound = 60 * time.Second // until it has the machine; it first checks tools
	beginLook  = 50 * time.Millisecond
	remembered = time.Hour
	lastLines  = 20 // of the output of a run that did not begin
)

// begin starts a run as a separate process, which continues when this server ends. It responds when
// the run has the machine, or has failed.
func (s *Server) begin(r *http.Request, lab Lab) (any, error) {
	args, p, err := planned(r, lab)
	if err != nil {
		return nil, err
	}
	if len(p.Problems) > 0 {
		return nil, refuse(http.StatusUnprocessableEntity, "%s", strings.Join(p.Problems, "; "))
	}
	s.beginning.Lock()
	defer s.beginning.Unlock()
	if err := s.free(r.Context()); err != nil {
		return nil, err
	}
	id, dir := record.NewFolder(s.Runs.Dir(), clock.Wall().Format("2006-01-02T15-04-05Z"))
	reply, err := s.diary(id)
	if err != nil {
		return nil, err
	}
	ended, err := lab.Start(append(args, "--out="+dir), reply)
	if err = errors.Join(err, reply.Close()); err != nil {
		return nil, fmt.Errorf("start the run: %w", err)
	}
	if err := s.begun(r.Context(), dir, reply.Name(), ended); err != nil {
		return nil, err
	}
	return map[string]string{"id": id}, nil
}

// free refuses if another run has the machine.
func (s *Server) free(ctx context.Context) error {
	entries, err := s.Runs.Brief(ctx)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.State == runs.Running {
			return refuse(http.StatusConflict, "run %s is in progress; wait for its end, or stop "+
				"it", e.ID)
		}
	}
	return nil
}

// diary creates the file for a run's output. It is next to the runs, because a run that does not
// begin leaves no folder.
func (s *Server) diary(id string) (*os.File, error) {
	dir := filepath.Join(s.Runs.Dir(), record.Kept)
	if err := os.MkdirAll(s.Runs.Dir(), 0o755); err != nil {
		return nil, err
	}
	if err := record.Keep(dir); err != nil {
		return nil, fmt.Errorf("start the run: %w", err)
	}
	folder := filepath.Join(dir, "runs")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	if err := s.forget(folder); err != nil {
		return nil, fmt.Errorf("start the run: %w", err)
	}
	const flags = os.O_CREATE | os.O_EXCL | os.O_WRONLY | os.O_APPEND
	name := filepath.Join(folder, id+".log")
	f, err := os.OpenFile(name, flags, 0o644)
	if errors.Is(err, os.ErrExist) { // of one that did not begin, within the same second
		if err = os.Remove(name); err == nil {
			f, err = os.OpenFile(name, flags, 0o644)
		}
	}
	return f, err
}

// forget removes the diaries of removed runs and of runs that never began. It keeps those of the
// last hour, because a run of another server may be starting.
func (s *Server) forget(folder string) error {
	diaries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, d := range diaries {
		id, is := strings.CutSuffix(d.Name(), ".log")
		info, err := d.Info()
		if !is || err != nil || clock.Wall().Sub(info.ModTime()) < remembered {
			continue
		}
		_, err = os.Lstat(filepath.Join(s.Runs.Dir(), id))
		if !errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := os.Remove(filepath.Join(folder, d.Name())); err != nil &&
			!errors.Is(err, os.ErrNotExist) { // another server may have removed it
			return err
		}
	}
	return nil
}

// cause returns a run's output from its last message on; earlier lines are only notices.
func cause(lines []string) []string {
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.HasPrefix(lines[i], "prony: ") {
			return lines[i:]
		}
	}
	return lines
}

// begun waits until a run writes its progress, which means that it has the machine.
func (s *Server) begun(ctx context.Context, dir, output string, ended <-chan error) error {
	look := time.NewTicker(beginLook)
	defer look.Stop()
	over := time.After(beginBound)
	for {
		select {
		case err := <-ended:
			if _, began := os.Stat(filepath.Join(dir, record.RunFile)); began == nil {
				return nil // it is over already
			}
			text := strings.Join(cause(files.Tail(output, lastLines)), "\n")
			if s.Busy != "" && strings.Contains(text, s.Busy) {
				return refuse(http.StatusConflict, "%s", text)
			}
			return refuse(http.StatusUnprocessableEntity, "the run did not begin (%v): %s", err,
				text)
		case <-look.C:
			if _, err := os.Stat(filepath.Join(dir, record.ProgressFile)); err == nil {
				return nil
			}
		case <-over:
			return nil // it still checks its tools; its events will report the result
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
