package progress

import (
	"io"
	"os"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"

	"prony.example/internal/base/format"
)

// screen is the page on a terminal. It uses the alternate screen, so that the terminal's contents
// are restored.
type screen struct {
	program *tea.Program
	ended   chan error
}

// newScreen returns nil if a page is not possible: the output is not a terminal, cannot move its
// cursor, or another program is in the foreground. It also needs a terminal for keys, because
// otherwise the terminal's responses to queries would reach the shell.
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

// keys returns the source of keys: the input, or the process's terminal if the input is not a
// terminal.
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

// draw may wait for the terminal; the pump calls it.
func (s *screen) draw() { s.program.Send(redraw{}) }

func (s *screen) close() error {
	s.program.Quit()
	return <-s.ended
}

// redraw is the message that the state has changed.
type redraw struct{}

// model is the page's Bubble Tea model. The view holds the state.
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
