package kubernetes

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"prony.example/internal/base/cmdlog"
)

// Limits on waiting for kubectl. They are far above the usual time, so only a cluster that hangs
// exceeds them.
const (
	callBound    = 30 * time.Second // one call
	requestBound = "--request-timeout=20s"
	maxTalk      = 8 << 10 // bytes of its error output that are kept
)

// cluster calls one cluster through kubectl.
type cluster struct {
	Program   string `json:"program"`
	Context   string `json:"context"` // empty: the current one
	Namespace string `json:"namespace"`
}

// find finds kubectl, and the namespace that kubectl uses by default.
func find(ctx context.Context, context, namespace string) (*cluster, error) {
	program, err := exec.LookPath("kubectl")
	if err != nil {
		return nil, errors.New("use Kubernetes: kubectl was not found; install it, and configure " +
			"it for your cluster")
	}
	c := &cluster{Program: program, Context: context, Namespace: namespace}
	if c.Namespace != "" {
		return c, nil
	}
	output, err := c.view(ctx, "{..namespace}")
	if err != nil {
		return nil, fmt.Errorf("use Kubernetes: %w", err)
	}
	c.Namespace = cmp.Or(output, "default")
	return c, nil
}

// command prepares a call of kubectl that a Ctrl-C does not interrupt and that ends with this
// program.
func (c *cluster) command(ctx context.Context, args ...string) *exec.Cmd {
	if c.Context != "" {
		args = append(args, "--context="+c.Context)
	}
	if c.Namespace != "" {
		args = append(args, "--namespace="+c.Namespace)
	}
	cmd := exec.CommandContext(ctx, c.Program, args...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	return cmd
}

// kept keeps the first bound bytes written to it and discards the rest. The buffer is not embedded,
// because its ReadFrom would keep everything.
type kept struct {
	text  bytes.Buffer
	bound int
	cut   bool
}

func (k *kept) Write(p []byte) (int, error) {
	if room := k.bound - k.text.Len(); len(p) > room {
		k.text.Write(p[:max(room, 0)])
		k.cut = true
		return len(p), nil // an error would end the writer
	}
	return k.text.Write(p)
}

// ask calls kubectl once and returns its output. Errors have kubectl's own text.
func (c *cluster) ask(ctx context.Context, input []byte, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callBound)
	defer cancel()
	cmd := c.command(ctx, append(args, requestBound)...)
	if input != nil {
		cmd.Stdin = bytes.NewReader(input)
	}
	out, talk := &kept{bound: maxSaid}, &kept{bound: maxTalk}
	cmd.Stdout, cmd.Stderr = out, talk
	cmdlog.Command(cmd)
	runtime.LockOSThread() // the parent-death signal of command follows this thread
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		return nil, c.explain(ctx, err, talk.text.String(), args)
	}
	if out.cut {
		return nil, fmt.Errorf("kubectl %s: the output has more than %d bytes", args[0], maxSaid)
	}
	return out.text.Bytes(), nil
}

// look fetches an object or a list as JSON.
func look[T any](ctx context.Context, c *cluster, args ...string) (v T, err error) {
	answer, err := c.ask(ctx, nil, append(args, "--output=json")...)
	if err != nil {
		return v, err
	}
	return readAs[T](answer)
}

// made creates an object and returns it as created. It ignores the cancellation of ctx:
// interrupted, it would be unknown whether the object exists.
func made[T any](ctx context.Context, c *cluster, o, shown object) (v T, err error) {
	answer, err := c.create(context.WithoutCancel(ctx), o, shown, "--output=json")
	if err != nil {
		return v, err
	}
	return readAs[T](answer)
}

// view returns a value of kubectl's configuration; empty: not set.
func (c *cluster) view(ctx context.Context, path string) (string, error) {
	output, err := c.ask(ctx, nil, "config", "view", "--minify", "--output", "jsonpath="+path)
	return strings.TrimSpace(string(output)), err
}

// create creates an object and returns kubectl's output. It logs shown, which has no values of
// secrets, as the command.
func (c *cluster) create(ctx context.Context, o, shown object, more ...string) ([]byte, error) {
	if cmdlog.Watched() {
		cmdlog.Say("echo " + cmdlog.Quote(string(text(shown))) + " | \\")
	}
	return c.ask(ctx, text(o), append([]string{"create", "--filename=-"}, more...)...)
}

func (c *cluster) explain(ctx context.Context, err error, talk string, args []string) error {
	words := said(talk)
	switch {
	case ctx.Err() != nil:
		words = cmp.Or(words, ctx.Err().Error())
	case words == "":
		words = err.Error()
	}
	return explained(fmt.Errorf("kubectl %s: %s", args[0], words), c.Namespace)
}

// stream is a call of kubectl with continuous output.
type stream struct {
	io.Reader
	cmd   *exec.Cmd
	talk  *kept
	over  chan struct{}
	input io.Writer // its standard input; nil: none
}

// start starts the call from a thread that lives until close.
func (s *stream) start() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			<-s.over
		}
	}()
	return <-started
}

// told starts a call whose standard input is stream.input.
func told(cmd *exec.Cmd) (*stream, error) {
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	s, err := begin(cmd)
	if err == nil {
		s.input = input
	}
	return s, err
}

// open starts a call. Close ends it.
func (c *cluster) open(ctx context.Context, args ...string) (*stream, error) {
	return begin(c.command(ctx, args...))
}

func begin(cmd *exec.Cmd) (*stream, error) {
	read, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s := &stream{Reader: read, cmd: cmd, talk: &kept{bound: maxTalk}, over: make(chan struct{})}
	cmd.Stderr = s.talk
	cmdlog.Command(cmd)
	if err := s.start(); err != nil {
		return nil, fmt.Errorf("start kubectl: %w", err)
	}
	return s, nil
}

// close ends the call if it runs, and returns its error output if it failed.
func (s *stream) close() error {
	_ = s.cmd.Process.Kill() // it may have ended
	err := s.cmd.Wait()      // also closes the pipes
	close(s.over)
	if words := said(s.talk.text.String()); err != nil && words != "" {
		return errors.New(words)
	}
	return nil
}
