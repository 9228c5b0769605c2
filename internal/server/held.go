package server

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Verb is a line of this program at work as a process of its own. It ends when In is closed, where
// the verb heeds that, and with the program that started it.
type Verb struct {
	In   io.Closer
	Out  io.Reader
	Wait func() error // behind the end of Out; what it said on standard error is in its error
}

// Held is the target that is held to be looked at, of which there is one at a time. Unlike a run
// it is the server's: it ends with it.
type Held struct {
	State     string    `json:"state"`
	Target    string    `json:"target"`
	URL       string    `json:"url"`
	ReadyS    float64   `json:"readyS"`
	InForce   []string  `json:"inForce"`
	Missing   []string  `json:"missing"`
	Cases     []Checked `json:"cases"`
	Checked   bool      `json:"checked"` // those are all of its contracts
	Usage     []Usage   `json:"usage"`   // the last of them
	Paths     []string  `json:"paths"`   // that its contracts ask for by GET
	Said      []string  `json:"said"`
	Measuring bool      `json:"measuring"` // a load is under way
}

// States of what is held.
const (
	heldNone     = "none"
	heldStarting = "starting"
	heldRunning  = "running"
	heldEnded    = "ended"
)

// Bounds of what is kept of a held target.
const (
	keptUsage = 120 // seconds
	keptSaid  = 100
	keptPaths = 50
	keptCases = 2000
	longTold  = 1 << 20 // a line, bytes
	shortText = 2 << 10 // a text in it
)

// holder is the server's place for one.
type holder struct {
	mu    sync.Mutex
	doc   Held
	log   string // the file of what it writes
	cores []int  // that a load on it has
	verb  *Verb  // nil: nothing runs
}

func (h *holder) document() Held {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.doc
	if d.State == "" {
		d.State = heldNone
	}
	d.InForce, d.Missing, d.Said = orNone(slices.Clone(d.InForce)),
		orNone(slices.Clone(d.Missing)), orNone(slices.Clone(d.Said))
	d.Cases, d.Usage, d.Paths = orNone(slices.Clone(d.Cases)), orNone(slices.Clone(d.Usage)),
		orNone(slices.Clone(d.Paths))
	return d
}

func (s *Server) held(*http.Request) (any, error) { return s.holder.document(), nil }

// start has a target of the catalog started, by the verb start.
func (s *Server) start(r *http.Request, lab Lab) (any, error) {
	var request struct {
		Target string  `json:"target"`
		CPUs   float64 `json:"cpus"`
		Memory string  `json:"memory"`
	}
	if err := read(r, &request); err != nil {
		return nil, err
	}
	targets, err := lab.Catalog(r.Context())
	if err != nil {
		return nil, err
	}
	index := slices.IndexFunc(targets, func(t Target) bool { return t.Name == request.Target })
	switch {
	case index < 0:
		return nil, refuse(http.StatusUnprocessableEntity, "target: there is no %.80q",
			request.Target)
	case len(targets[index].Missing) > 0:
		return nil, refuse(http.StatusUnprocessableEntity, "%s cannot be had here: %s",
			request.Target, strings.Join(targets[index].Missing, "; "))
	case request.CPUs < 0:
		return nil, refuse(http.StatusUnprocessableEntity, "cpus: want more than 0")
	case request.Memory != "" && !words.MatchString(request.Memory):
		return nil, refuse(
			http.StatusUnprocessableEntity,
			"memory: %.80q is not one",
			request.Memory,
		)
	}
	args := []string{"start", "--json", "--until-stdin-ends"}
	if request.CPUs > 0 {
		args = append(args, "--cpus="+strconv.FormatFloat(request.CPUs, 'g', -1, 64))
	}
	if request.Memory != "" {
		args = append(args, "--memory="+request.Memory)
	}
	return s.hold(r, lab, request.Target, append(args, "--", request.Target))
}

// hold begins to hold a target, where nothing else has the machine.
func (s *Server) hold(r *http.Request, lab Lab, target string, args []string) (any, error) {
	s.beginning.Lock() // no run, either
	defer s.beginning.Unlock()
	if err := s.free(r.Context()); err != nil {
		return nil, err
	}
	h := &s.holder
	h.mu.Lock()
	if h.verb != nil {
		defer h.mu.Unlock()
		return nil, refuse(http.StatusConflict, "%s is held; stop it first", h.doc.Target)
	}
	verb, err := lab.Verb(args)
	if err != nil {
		h.mu.Unlock()
		return nil, err
	}
	h.doc, h.log, h.verb = Held{State: heldStarting, Target: target}, "", verb
	h.mu.Unlock()
	over := make(chan struct{})
	go func() {
		defer close(over)
		h.follow(verb)
	}()
	go func() {
		select {
		case <-over:
		case <-s.closed: // with the server
			_ = verb.In.Close() // it may have ended
		}
	}()
	return h.document(), nil
}

// follow takes in what the verb tells, until it has ended.
func (h *holder) follow(verb *Verb) {
	lines := bufio.NewScanner(verb.Out)
	lines.Buffer(nil, longTold)
	reported := false // how it ended
	for lines.Scan() {
		var t Told
		if json.Unmarshal(lines.Bytes(), &t) == nil {
			h.heed(t)
			reported = reported || t.Kind == ToldEnd
		}
	}
	_, _ = io.Copy(io.Discard, verb.Out) // a line that was too long ends the others
	err := verb.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil && !reported {
		h.say(err.Error())
	}
	_ = verb.In.Close() // it has ended
	h.verb, h.doc.State, h.doc.URL = nil, heldEnded, ""
}

// say keeps a text; the caller has the lock.
func (h *holder) say(text string) {
	h.doc.Said = append(h.doc.Said, shortened(text))
	h.doc.Said = h.doc.Said[max(0, len(h.doc.Said)-keptSaid):]
}

func shortened(text string) string {
	if len(text) > shortText {
		return strings.ToValidUTF8(text[:shortText], "") + " …"
	}
	return text
}

func (h *holder) heed(t Told) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := &h.doc
	switch t.Kind {
	case ToldSay, ToldEnd:
		if t.Text != "" {
			h.say(t.Text)
		}
	case ToldReady:
		d.State, d.URL, d.ReadyS, h.log = heldRunning, t.URL, t.ReadyS, t.Log
		d.InForce, d.Missing, h.cores = t.InForce, t.Missing, t.Cores
	case ToldCase:
		if t.Case == nil || len(d.Cases) >= keptCases {
			break
		}
		t.Case.Text = shortened(t.Case.Text)
		d.Cases = append(d.Cases, *t.Case)
		path, is := strings.CutPrefix(t.Case.Request, "GET ")
		if is && len(path) < 200 && len(d.Paths) < keptPaths && !slices.Contains(d.Paths, path) {
			d.Paths = append(d.Paths, path)
		}
	case ToldAll:
		d.Checked = true
	case ToldUsage:
		if t.Usage != nil {
			d.Usage = append(d.Usage, *t.Usage)
			d.Usage = d.Usage[max(0, len(d.Usage)-keptUsage):]
		}
	}
}

// release stops what is held.
func (s *Server) release(*http.Request) (any, error) {
	h := &s.holder
	h.mu.Lock()
	verb := h.verb
	h.mu.Unlock()
	if verb == nil {
		return nil, refuse(http.StatusConflict, "nothing is held")
	}
	if err := verb.In.Close(); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		return nil, fmt.Errorf("stop the target: %w", err)
	}
	return h.document(), nil
}

// running is where what is held takes requests.
func (h *holder) running() (url string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.doc.State != heldRunning {
		return "", refuse(http.StatusConflict, "nothing is held that takes requests")
	}
	return h.doc.URL, nil
}
