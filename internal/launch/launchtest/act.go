package launchtest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"prony.example/internal/base/clock"
)

// Act is the target of the suite, for test binaries and programs made for tests. If the first
// argument names an act, Act runs it and returns the status with which the program must end;
// otherwise ok is false.
func Act(args []string, out, errors io.Writer) (status int, ok bool) {
	if len(args) == 0 {
		return 0, false
	}
	do, ok := acts[args[0]]
	if !ok {
		return 0, false
	}
	a := act{out, errors}
	status, err := do(a)
	if err != nil {
		a.say(err.Error())
		return 1, true
	}
	return status, true
}

// act holds the output streams of an act.
type act struct{ out, errors io.Writer }

func (a act) say(text string) { _, _ = io.WriteString(a.out, text+"\n") }

var acts = map[string]func(act) (int, error){
	"act-forever": act.forever, "act-deaf": act.deaf, "act-forks": act.forks,
	"act-fails": act.fails, "act-prints": act.prints, "act-listens": act.listens,
	"act-dials": act.dials, "act-eats": act.eats, "act-burns": act.burns,
	"act-feeds": act.feeds, "act-floods": act.floods, "act-ticks": act.ticks,
}

// forever runs until SIGTERM, then ends with status 0.
func (a act) forever() (int, error) {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM, syscall.SIGINT)
	a.say("ready")
	a.say("heard " + (<-term).String())
	return 0, nil
}

// deaf ignores SIGTERM.
func (a act) deaf() (int, error) {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	a.say("ready")
	for {
		<-term
	}
}

// forks leaves a child in the background and runs until it is ended.
func (a act) forks() (int, error) {
	self, err := os.Executable()
	if err == nil {
		err = exec.Command(self, "act-deaf").Start()
	}
	if err != nil {
		return 0, err
	}
	return a.deaf()
}

// fails writes "cannot begin" and ends with status 3.
func (a act) fails() (int, error) {
	_, _ = io.WriteString(a.errors, "cannot begin\n")
	return 3, nil
}

// prints prints its environment, one variable a line, and ends.
func (a act) prints() (int, error) {
	a.say(strings.Join(os.Environ(), "\n"))
	return 0, nil
}

// serve answers each connection at HOST and PORT and then calls heard.
func (a act) serve(heard func()) (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(os.Getenv("HOST"), os.Getenv("PORT")))
	if err != nil {
		return 0, err
	}
	a.say("ready")
	for {
		c, err := l.Accept()
		if err != nil {
			return 0, err
		}
		_, _ = io.WriteString(c, "hello\n") // who has gone needs no answer
		c.Close()
		heard()
	}
}

func (a act) listens() (int, error) { return a.serve(func() {}) }

// dials prints the answer of the program at PEER.
func (a act) dials() (int, error) {
	c, err := net.Dial("tcp", os.Getenv("PEER"))
	if err != nil {
		return 0, err
	}
	defer c.Close()
	b, _ := io.ReadAll(c) // what has come is what it says
	a.say("heard " + string(b))
	return a.forever()
}

// eats allocates memory from the first connection on, until something stops it.
func (a act) eats() (int, error) {
	var eaten [][]byte
	return a.serve(func() {
		for {
			b := make([]byte, 1<<20)
			for i := 0; i < len(b); i += os.Getpagesize() {
				b[i] = 1 // the kernel gives a page when it is first written
			}
			eaten = append(eaten, b)
		}
	})
}

// FloodLines is the number of lines that floods writes, and FloodLine their length in bytes.
const (
	FloodLines = 1 << 18
	FloodLine  = 160
)

// floods writes numbered lines as fast as it can, and then runs until it is ended.
func (a act) floods() (int, error) {
	w := bufio.NewWriterSize(a.out, 1<<16)
	for i := range FloodLines {
		if _, err := fmt.Fprintf(w, "%0*d\n", FloodLine-1, i); err != nil {
			return 0, err
		}
	}
	if err := w.Flush(); err != nil {
		return 0, err
	}
	return a.forever()
}

// feeds starts a child that eats, and survives its end.
func (a act) feeds() (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	child := exec.Command(self, "act-eats")
	child.Stdout, child.Stderr = a.out, a.errors
	if err := child.Start(); err != nil {
		return 0, err
	}
	go func() {
		_ = child.Wait() // its status says how it ended
		a.say("child: " + child.ProcessState.String())
	}()
	return a.deaf()
}

// ticks works for 10 ms every 100 ms, by a timer, also without requests.
func (a act) ticks() (int, error) {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	a.say("ready")
	for {
		select {
		case <-term:
			return 0, nil
		case <-tick.C:
			for end := clock.Mono() + 10e6; clock.Mono() < end; {
				continue
			}
		}
	}
}

// burns uses all the processor time that it gets.
func (a act) burns() (int, error) {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	a.say("ready")
	for {
		select {
		case <-term:
			return 0, nil
		case <-time.After(0):
		}
	}
}
