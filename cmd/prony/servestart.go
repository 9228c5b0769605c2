//go:build linux && !portable

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"prony/internal/file"
	"prony/internal/print"
	"prony/internal/serve"
)

// Plan implements serve.Lab: the line is read as run reads it, and planned as plan does.
func (r *room) Plan(ctx context.Context, args []string) (p serve.Plan, err error) {
	var told bytes.Buffer
	a := *r.app
	a.stderr = print.NewScreen(&told)
	l, project, _, err := a.labOrProject()
	if err != nil {
		return p, err
	}
	f := &runFlags{}
	c := &cobra.Command{Use: "run"}
	f.suiteFlags(c)
	c.Flags().StringToStringVar(&f.asked.Labels, "label", nil, "")
	if err := c.ParseFlags(args[1:]); err != nil {
		return p, err
	}
	if err := extents(c); err != nil {
		return p, err
	}
	names := c.Flags().Args()
	if project == nil && len(names) > 0 {
		names = []string{filepath.Join(l.Root, names[0])}
	}
	wish, err := f.wish(c, names)
	if err != nil {
		return p, err
	}
	if project != nil {
		if err := ofProject(ctx, l, project, &wish, nil); err != nil {
			return p, err
		}
	}
	plan, err := l.Here(ctx, wish)
	if err != nil {
		return p, err
	}
	least, most := plan.Estimate()
	p.LeastS, p.MostS = least.Seconds(), most.Seconds()
	for _, t := range plan.Trials {
		if plan.Suite.For > 0 && t.Block > 1 {
			continue // which follow is decided while it runs
		}
		p.Trials = append(p.Trials, serve.Planned{Trial: t.ID, Target: t.Target,
			Scenario: t.Scenario, Block: t.Block, Role: t.Role})
	}
	for line := range strings.Lines(told.String()) {
		p.Notes = append(p.Notes, strings.TrimSpace(line))
	}
	return p, nil
}

// Start implements serve.Lab: the program itself, in a session of its own, so that neither the
// server's end nor that of its terminal is the run's.
func (r *room) Start(args []string, said *os.File) (<-chan error, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, r.rooted(args)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.root, said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := r.away.start(cmd); err != nil {
		return nil, fmt.Errorf("start prony run: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return ended, nil
}

// rooted is a line of the checkout that is served.
func (r *room) rooted(args []string) []string {
	if r.rootFlag == "" {
		return args
	}
	return append([]string{"--root=" + r.root}, args...)
}

// Verb implements serve.Lab: the program itself. Where it is told to attend it ends with standard
// input, and so with this server, however that ends; other lines end by themselves.
func (r *room) Verb(args []string) (*serve.Verb, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, r.rooted(args)...)
	said := &file.End{}
	cmd.Dir, cmd.Stderr = r.root, said
	// What a terminal sends to the server is not for it: it ends when the server has.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if err := r.away.start(cmd); err != nil {
		return nil, fmt.Errorf("start prony %s: %w", args[0], err)
	}
	return &serve.Verb{In: in, Out: out, Wait: func() error {
		err := cmd.Wait()
		if text := said.String(); err != nil && text != "" {
			return errors.New(strings.TrimPrefix(text, "prony: "))
		}
		return err
	}}, nil
}
