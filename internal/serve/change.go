package serve

import (
	"net/http"
	"os"
	"unicode"

	"prony/internal/shelf"
)

// label puts labels on a run, in place of those that it had.
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

// remove takes a run away.
func (s *Server) remove(w http.ResponseWriter, r *http.Request) error {
	if err := s.Runs.Remove(r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// maxReason bounds why a run was stopped, in bytes.
const maxReason = 500

// stop ends a run as Ctrl-C does: the trial under way is given up, what has a record stays, and
// prony run --resume goes on with it.
func (s *Server) stop(r *http.Request) (any, error) {
	var asked struct {
		Reason string `json:"reason"`
	}
	if err := read(r, &asked); err != nil {
		return nil, err
	}
	for _, c := range asked.Reason {
		if unicode.IsControl(c) {
			return nil, refuse(http.StatusBadRequest, "reason: want a line of text")
		}
	}
	if len(asked.Reason) > maxReason {
		return nil, refuse(http.StatusBadRequest, "reason: want at most %d bytes", maxReason)
	}
	id := r.PathValue("id")
	lab, err := s.underWay(id)
	if err != nil {
		return nil, err
	}
	// The kernel's handle on the process comes first: the number alone may be another's by now.
	process, err := os.FindProcess(lab.PID)
	if err != nil {
		return nil, refuse(http.StatusConflict, "run %s has just ended", id)
	}
	defer func() { _ = process.Release() }() // nothing to be done about it
	if _, err := s.underWay(id); err != nil {
		return nil, err
	}
	if s.Ours != nil && !s.Ours(lab.PID) {
		return nil, refuse(http.StatusConflict, "run %s names process %d, which is no prony: end "+
			"the run where it was begun", id, lab.PID)
	}
	if asked.Reason != "" {
		if err := s.Runs.Reason(id, asked.Reason); err != nil {
			return nil, err
		}
	}
	if err := process.Signal(os.Interrupt); err != nil {
		return nil, refuse(http.StatusConflict, "run %s has just ended", id)
	}
	return map[string]string{"id": id}, nil
}

// underWay is the lab that is at work on a run.
func (s *Server) underWay(id string) (*shelf.Lab, error) {
	lab, err := s.Runs.Lab(id)
	if err != nil {
		return nil, err
	}
	if lab == nil {
		return nil, refuse(http.StatusConflict, "run %s is not under way", id)
	}
	return lab, nil
}
