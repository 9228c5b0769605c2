package progress

import (
	"io"
	"os"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"

	"prony.example/internal/base/format"
)

// screen is the page on a terminal. It has a screen of its own, which leaves what was on the
// terminal as it was.
type screen struct {
	program *tea.Program
	ended   chan error
}

// newScreen returns nil where no page can be had: the output is no terminal, or one that cannot
// move its cursor, or another program's turn; or no keys can be read, without which the terminal's
// answers to questions would end up in the shell.
func newScreen(v *View) *screen {
	out, ok := format.Raw(v.cfg.Out).(*os.File)
	if !ok || !term.IsTerminal(int(out.Fd())) || !foreground(out) {
		return nil
	}
	if _, _, err := term.GetSize(int(out.Fd())); err != nil || getenv(v.cfg.Env, "TERM") == "dumb" {
		return nil
	}
	in := keys(v.cfg.In)
	if in == nil {
		return nil
	}
	return startScreen(v, tea.WithInput(in), tea.WithOutput(out))
}

func startScreen(v *View, options ...tea.ProgramOption) *screen {
	options = append(options, tea.WithEnvironment(v.cfg.Env), tea.WithoutSignalHandler(),
		tea.WithFPS(int(1e9/redrawEvery)))
	s := &screen{program: tea.NewProgram(model{view: v}, options...), ended: make(chan error, 1)}
	go func() {
		_, err := s.program.Run()
		s.ended <- err
	}()
	return s
}

// keys is where to read keys from: the input, or the process's terminal where the input is
// something else.
func keys(in io.Reader) io.Reader {
	if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	tty, _, err := tea.OpenTTY()
	if err != nil {
		return nil
	}
	return tty
}

func getenv(env []string, name string) string {
	for _, e := range env {
		if len(e) > len(name) && e[len(name)] == '=' && e[:len(name)] == name {
			return e[len(name)+1:]
		}
	}
	return ""
}

// draw waits for the terminal, if it must: the pump calls it.
func (s *screen) draw() { s.program.Send(redraw{}) }

func (s *screen) close() error {
	s.program.Quit()
	return <-s.ended
}

// redraw is the message that there is something new.
type redraw struct{}

// model is the page as Bubble Tea wants it. The state stays with the view.
type model struct {
	view          *View
	width, height int
}

func (m model) Init() tea.Cmd { return nil }

func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		switch msg.String() {
		case "q", "ctrl+c":
			m.view.Interrupt()
		}
	}
	return m, nil
}

func (m model) View() tea.View {
	m.view.mu.Lock()
	defer m.view.mu.Unlock()
	page := tea.NewView(frame(m.view.state, m.width, m.height))
	page.AltScreen = true
	page.DisableBracketedPasteMode = true
	return page
}
