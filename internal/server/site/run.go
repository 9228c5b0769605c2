package site

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/files"
	"prony.example/internal/report"
	"prony.example/internal/report/history"
	"prony.example/internal/report/runs"
	"prony.example/record"
)

// page is the result of writing a run.
type page struct {
	fresh  bool // whether it was made now
	series []history.Series
	lost   error // why it cannot be read and is left out
}

// markFile is in the folder of each completely written run and identifies its inputs.
const markFile = "made.json"

type mark struct {
	Program string                `json:"program"`
	Sources map[string]runs.Stamp `json:"sources"`
}

// raw lists the files of a run that are copied for download, each bounded as it is read.
var raw = []string{record.RunFile, record.TrialsFile}

// sources lists the inputs of a run's page.
var sources = append([]string{record.LabelsFile, record.ScheduleFile, "series", "profiles"}, raw...)

// writeRun writes a run's files, unless their inputs are unchanged; then it does not read the run.
// It fails if it cannot write; a run that cannot be read is lost.
func writeRun(s *runs.Shelf, id, to string, o Options) (page, error) {
	dir, err := s.Path(id)
	if err != nil {
		return page{lost: err}, nil
	}
	now, err := json.Marshal(marked(dir, o.Program))
	if err != nil {
		return page{}, fmt.Errorf("write site: %w", err)
	}
	before, err := files.Read(filepath.Join(to, markFile), files.Page)
	if err == nil && bytes.Equal(before, now) {
		if series, err := kept(filepath.Join(to, seriesFile)); err == nil {
			return page{series: series}, nil
		}
	}
	run, err := s.Read(id)
	if err != nil {
		return page{lost: err}, nil
	}
	study := run.Study(run.Options())
	p := page{fresh: true, series: history.Of(history.Run{Head: run.Head,
		Records: record.Compared(run.Records)}, study, history.Options{})}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return p, fmt.Errorf("write site: %w", err)
	}
	if err := os.Remove(filepath.Join(to, markFile)); err != nil &&
		!errors.Is(err, fs.ErrNotExist) {
		return p, fmt.Errorf("write site: %w", err)
	}
	if err := reports(run, study, id, to); err != nil {
		return p, err
	}
	for _, name := range raw {
		if err := replicate(filepath.Join(run.Dir, name), filepath.Join(to, name)); err != nil {
			return p, fmt.Errorf("write site: copy %s of run %s: %w", name, id, err)
		}
	}
	var series bytes.Buffer
	if err := history.Keep(&series, p.series); err != nil {
		return p, fmt.Errorf("write site: %w", err)
	}
	if err := put(filepath.Join(to, seriesFile), series.Bytes()); err != nil {
		return p, err
	}
	return p, put(filepath.Join(to, markFile), now)
}

// seriesFile has a run's part of the histories, for the next time that the site is written.
const seriesFile = "series.json"

func kept(name string) ([]history.Series, error) {
	b, err := files.Read(name, files.Page)
	if err != nil {
		return nil, err
	}
	return history.Kept(bytes.NewReader(b))
}

func marked(dir, program string) mark {
	m := mark{Program: program, Sources: map[string]runs.Stamp{}}
	for _, name := range sources {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			m.Sources[name] = runs.StampOf(info)
		}
	}
	return m
}

// reports writes the reports of a run.
func reports(run *runs.Run, study table.Study, id, to string) error {
	var html, doc bytes.Buffer
	err := report.HTML(&html, study, report.OfRun(run, study))
	if err == nil {
		err = report.JSON(&doc, study, report.JSONOptions{Answers: run.AnswerTexts(&study),
			Endpoints: run.Endpoints()})
	}
	if err != nil {
		return fmt.Errorf("write the report of run %s: %w", id, err)
	}
	if err := put(filepath.Join(to, "report.html"), html.Bytes()); err != nil {
		return err
	}
	return put(filepath.Join(to, "report.json"), doc.Bytes())
}

// replicate copies a file; it replaces an existing file and does not write through a link.
func replicate(from, to string) error {
	in, err := files.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was only read
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
