package server

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"prony.example/internal/report"
	"prony.example/internal/report/runs"
	"prony.example/record"
)

// Bounds of a page of the index.
const (
	usualPage = 50
	maxPage   = 1000
	maxLeft   = 100 // folders that cannot be read
)

// runs responds with a page of the index, the newest runs first. The cursor names the last entry of
// the previous page, so that new or removed runs neither repeat nor skip an entry.
func (s *Server) runs(r *http.Request) (any, error) {
	q := r.URL.Query()
	if err := only(q, "suite", "target", "verdict", "label", "machine", "text", "from",
		"to", "limit", "cursor"); err != nil {
		return nil, err
	}
	f, limit, err := filterOf(q)
	if err != nil {
		return nil, err
	}
	after, err := base64.RawURLEncoding.DecodeString(q.Get("cursor"))
	if text := string(after); err != nil || text != "" && !runs.IsPlace(text) {
		return nil, refuse(http.StatusBadRequest, "cursor: must be the value of next from an "+
			"earlier response")
	}
	page, err := s.Runs.Page(r.Context(), f, string(after), limit)
	if err != nil {
		return nil, err
	}
	out := index{Runs: page.Entries, Total: page.Total, All: page.All,
		Left: page.Unreadable[:min(maxLeft, len(page.Unreadable))]}
	if page.More {
		last := page.Entries[len(page.Entries)-1].Place()
		out.Next = base64.RawURLEncoding.EncodeToString([]byte(last))
	}
	if page.Unread > 0 {
		out.Reading = &reading{Read: max(0, page.Runs-page.Unread), Total: page.Runs}
	}
	return out, nil
}

// choices responds with the values of the filters.
func (s *Server) choices(r *http.Request) (any, error) {
	if err := only(r.URL.Query()); err != nil {
		return nil, err
	}
	return s.Runs.Choices(r.Context())
}

// index is a page of the index.
type index struct {
	Runs    []runs.Entry   `json:"runs"`
	Next    string         `json:"next"`
	Total   int            `json:"total"`
	All     int            `json:"all"`
	Left    []runs.LeftOut `json:"left"`
	Reading *reading       `json:"reading,omitempty"`
}

// reading tells that the index is incomplete, because runs have yet to be read.
type reading struct {
	Read  int `json:"read"`
	Total int `json:"total"`
}

// only refuses unknown parameters, because a mistyped one would silently have no effect.
func only(q url.Values, names ...string) error {
	for name, values := range q {
		if len(names) == 0 {
			return refuse(http.StatusBadRequest, "unknown parameter %.80q; there are none", name)
		}
		if !slices.Contains(names, name) {
			return refuse(http.StatusBadRequest, "unknown parameter %.80q; the parameters are %s",
				name,
				strings.Join(names, ", "))
		}
		if len(values) > 1 {
			return refuse(http.StatusBadRequest, "parameter %s is given %d times, but only one "+
				"value is allowed", name,
				len(values))
		}
	}
	return nil
}

func filterOf(q url.Values) (f runs.Filter, limit int, err error) {
	f = runs.Filter{Suite: q.Get("suite"), Target: q.Get("target"), Label: q.Get("label"),
		Verdict: strings.ToLower(q.Get("verdict")), Machine: q.Get("machine"),
		Text: q.Get("text")}
	if f.Verdict != "" && !slices.Contains(runs.Verdicts, f.Verdict) {
		return f, 0, refuse(http.StatusBadRequest, "unknown verdict %.80q; the verdicts are %s",
			f.Verdict,
			strings.Join(runs.Verdicts, ", "))
	}
	if f.From, err = moment(q.Get("from"), 0); err != nil {
		return f, 0, err
	}
	if f.To, err = moment(q.Get("to"), 24*time.Hour-1); err != nil {
		return f, 0, err
	}
	limit = usualPage
	if text := q.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxPage {
			return f, 0, refuse(http.StatusBadRequest, "limit %.80q must be a number from 1 to %d",
				text, maxPage)
		}
	}
	return f, limit, nil
}

// moment parses a date and time, or a date, to which it adds into.
func moment(text string, into time.Duration) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return t.Add(into), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, refuse(http.StatusBadRequest, "%.80q is not a date; write 2026-11-21, or "+
			"2026-11-21T03:40:11Z", text)
	}
	return t, nil
}

func (s *Server) run(r *http.Request) (any, error) { return s.Runs.Entry(r.PathValue("id")) }

func (s *Server) report(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	return s.present(w, r, "application/json", "report", []string{id}, func(w io.Writer) error {
		run, err := s.Runs.Read(id)
		if err != nil {
			return err
		}
		study := run.Study(run.Options())
		return report.JSON(w, study, report.JSONOptions{Answers: run.AnswerTexts(&study),
			Endpoints: run.Endpoints()})
	})
}

// page responds with the report's page, made of the current records.
func (s *Server) page(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	w.Header().Set("Content-Security-Policy", reportPolicy)
	return s.present(w, r, "text/html; charset=utf-8", "page", []string{id},
		func(w io.Writer) error {
			run, err := s.Runs.Read(id)
			if err != nil {
				return err
			}
			study := run.Study(run.Options())
			return report.HTML(w, study, report.OfRun(run, study))
		})
}

// labLog responds with the messages in the run's progress.
func (s *Server) labLog(w http.ResponseWriter, r *http.Request) error {
	dir, err := s.Runs.Folder(r.PathValue("id"))
	if err != nil {
		return err
	}
	lines, err := said(dir)
	if err != nil {
		return err
	}
	asText(w)
	_, err = io.WriteString(w, lines)
	return ignore(err)
}

// said returns the messages of a run so far, a line each; "" without a progress file.
func said(dir string) (string, error) {
	f, err := runs.OpenIn(dir, record.ProgressFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // nothing was written
	var b strings.Builder
	_, err = record.ReadLines(record.ProgressFile, f, func(line []byte) error {
		var e record.Progress
		if json.Unmarshal(line, &e) != nil {
			return nil // the last line is still being written
		}
		switch e.Kind {
		case record.Says, record.TrialEnds, record.Ends:
			b.WriteString(e.Text + "\n")
		}
		return nil
	})
	return b.String(), err
}

// serviceLog responds with a service's log of a trial. Browsers may request only its end (RFC 9110,
// 14.2), to follow the log.
func (s *Server) serviceLog(w http.ResponseWriter, r *http.Request) error {
	dir, err := s.Runs.Path(r.PathValue("id"))
	if err != nil {
		return err
	}
	name := r.PathValue("trial")
	if !runs.Identifier(name) {
		return refuse(http.StatusNotFound, "trial %.128q has no log", name)
	}
	return serveText(w, r, dir, filepath.Join("logs", name+".log"),
		refuse(http.StatusNotFound, "trial %.128q has no log", name))
}

// trials sends a run's records, a line each.
func (s *Server) trials(w http.ResponseWriter, r *http.Request) error {
	dir, err := s.Runs.Path(r.PathValue("id"))
	if err != nil {
		return err
	}
	return serveText(w, r, dir, record.TrialsFile,
		refuse(http.StatusNotFound, "run %s has no records", r.PathValue("id")))
}

// serveText responds with a file of a run as text, or refuses if the run does not have the file.
func serveText(w http.ResponseWriter, r *http.Request, dir, file string, refusal error) error {
	f, err := runs.OpenIn(dir, file)
	if err != nil {
		return refusal
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err != nil {
		return err
	}
	asText(w)
	http.ServeContent(w, r, "", info.ModTime(), f)
	return nil
}

// asText makes browsers show the output of a service as text, whatever its contents.
func asText(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'")
}

// label replaces the labels of a run.
func (s *Server) label(r *http.Request) (any, error) {
	labels := map[string]string{}
	if err := read(r, &labels); err != nil {
		return nil, err
	}
	if err := s.Runs.Label(r.PathValue("id"), labels); err != nil {
		return nil, err
	}
	return s.run(r)
}

// remove deletes a run.
func (s *Server) remove(w http.ResponseWriter, r *http.Request) error {
	if err := s.Runs.Remove(r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// maxReason bounds the reason for stopping a run, in bytes.
const maxReason = 500

// stop ends a run as Ctrl-C does: it discards the trial under way and keeps all records, and prony
// run --resume continues the run.
func (s *Server) stop(r *http.Request) (any, error) {
	var request struct {
		Reason string `json:"reason"`
	}
	if err := read(r, &request); err != nil {
		return nil, err
	}
	for _, c := range request.Reason {
		if unicode.IsControl(c) {
			return nil, refuse(http.StatusBadRequest, "reason: must be one line of text")
		}
	}
	if len(request.Reason) > maxReason {
		return nil, refuse(http.StatusBadRequest, "reason: must have at most %d bytes", maxReason)
	}
	id := r.PathValue("id")
	lab, err := s.underWay(id)
	if err != nil {
		return nil, err
	}
	// The kernel's handle on the process comes first, because its number may already be reused.
	process, err := os.FindProcess(lab.PID)
	if err != nil {
		return nil, refuse(http.StatusConflict, "run %s has just ended", id)
	}
	defer func() { _ = process.Release() }() // an error has no effect
	if _, err := s.underWay(id); err != nil {
		return nil, err
	}
	dir, err := s.Runs.Folder(id)
	if err != nil {
		return nil, err
	}
	if s.Ours != nil && !s.Ours(lab.PID, dir) {
		return nil, refuse(http.StatusConflict, "run %s belongs to process %d, which does not "+
			"write it: end the run on the machine where it was started", id, lab.PID)
	}
	if request.Reason != "" {
		if err := s.Runs.Reason(id, request.Reason); err != nil {
			return nil, err
		}
	}
	if err := process.Signal(os.Interrupt); err != nil {
		return nil, refuse(http.StatusConflict, "run %s has just ended", id)
	}
	return map[string]string{"id": id}, nil
}

// underWay returns the process that measures a run; it fails with 409 if there is none.
func (s *Server) underWay(id string) (*runs.Lab, error) {
	lab, err := s.Runs.Lab(id)
	if err != nil {
		return nil, err
	}
	if lab == nil {
		return nil, refuse(http.StatusConflict, "run %s is not running", id)
	}
	return lab, nil
}
