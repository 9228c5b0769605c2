package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/spf13/cobra"

	"prony/internal/cli"
	"prony/internal/host"
	"prony/internal/service"
)

// buildBytes is the memory that one build may take: a Maven or Cargo build of the catalog stays
// below it.
const buildBytes = 2 << 30

func (a *app) buildCmd() *cobra.Command {
	jobs, images := 0, false
	c := &cobra.Command{
		Use: "build [SERVICE...]", Short: "Build services, all that can be built by default",
		Args: cobra.ArbitraryArgs,
		Long: `Build makes the artifacts of services, each in a private copy of its folder below
.prony/build, several at once as processors and memory allow. A build is taken again as long as
sources, steps and tool versions stay the same. What the steps printed is in build.log beside the
copy. Run does it by itself. A build that succeeds removes earlier copies of the same build that
nothing has used for 7 days and no lab holds.

With --images it also builds the container's image of each from its Dockerfile, with Docker, and
notes how large it is: tables that ask for the column "image" have it then.`,
		Example: "  prony build\n  prony build java-netty rust-axum\n  prony build --jobs 1",
		RunE: func(c *cobra.Command, args []string) error {
			if jobs < 0 {
				return cli.Usagef("--jobs %d: want 1 or more", jobs)
			}
			return a.build(c.Context(), args, jobs, images)
		},
	}
	c.Flags().IntVar(&jobs, "jobs", 0,
		"builds at once; 0: one for each processor, and for each 2 GiB of free memory")
	c.Flags().BoolVar(&images, "images", false, "build the container's images, too (needs Docker)")
	return c
}

func (a *app) build(ctx context.Context, args []string, jobs int, images bool) error {
	root, err := a.root()
	if err != nil {
		return err
	}
	services, err := a.choose(root, args)
	if err != nil {
		return err
	}
	tools := service.FindTools(ctx)
	var able []*service.Service
	for _, s := range services {
		// A further build, such as a native one, is skipped even where its service is named.
		if missing := tools.Missing(s); len(missing) > 0 && (len(args) == 0 || s.Other != "") {
			fmt.Fprintf(a.stdout, "skipped %s: %s\n", s.Label(), missing[0])
			continue
		}
		able = append(able, s)
	}
	var errs []error
	b := a.builder(root, tools)
	for i, o := range a.buildAll(ctx, a.world.build, b, able, jobs) {
		if o.err == nil && images {
			o.err = weigh(ctx, b, able[i], o.built)
		}
		if o.err != nil {
			errs = append(errs, o.err)
			if errors.Is(o.err, service.ErrNoDocker) {
				break // the others would say the same
			}
			continue
		}
		how := fmt.Sprintf("built in %.1f s", float64(o.built.DurationNs)/1e9)
		if o.built.Cached {
			how = "unchanged"
		}
		if o.built.ImageBytes > 0 {
			how += fmt.Sprintf(", image %.1f MiB", mebibytes(o.built.ImageBytes))
		}
		fmt.Fprintf(a.stdout, "%-22s %8.1f MiB  %s  %s\n", able[i].Label(),
			mebibytes(o.built.SizeBytes), o.built.SHA256[:12], how)
	}
	return errors.Join(errs...)
}

// weigh builds the image of a service that has one, and notes its size with the build.
func weigh(ctx context.Context, b *service.Builder, s *service.Service,
	built *service.Built) error {
	if s.Other != "" && s.NoImage(s.Targets[0]) != "" {
		return nil
	}
	image, err := b.Image(ctx, s)
	if err != nil {
		return err
	}
	return b.Weigh(built, image)
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

// builder says what it does, from several goroutines.
func (a *app) builder(root string, tools *service.Tools) *service.Builder {
	var mu sync.Mutex
	return &service.Builder{Root: root, Tools: tools, Progress: func(line string) {
		mu.Lock()
		defer mu.Unlock()
		a.say(line)
	}}
}

// maker makes what a service is started from: its artifact, or its image.
type maker func(context.Context, *service.Builder, *service.Service) (*service.Built, error)

// outcome is what became of one build.
type outcome struct {
	built *service.Built
	err   error
}

// buildAll builds services side by side and gives what became of each, in their order. One that
// fails does not stop the others.
func (a *app) buildAll(ctx context.Context, build maker, b *service.Builder,
	services []*service.Service, jobs int) []outcome {
	if jobs == 0 {
		jobs = buildJobs(runtime.NumCPU(), host.AvailableBytes())
	}
	out := make([]outcome, len(services))
	free := make(chan struct{}, jobs)
	var all sync.WaitGroup
	for i, s := range services {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			if ctx.Err() != nil {
				out[i].err = fmt.Errorf("build %s: interrupted", s.Label())
				return
			}
			out[i].built, out[i].err = build(ctx, b, s)
		})
	}
	all.Wait()
	return out
}

// buildJobs is how many builds a machine bears at once.
func buildJobs(cores int, availableBytes int64) int {
	return max(1, min(cores, int(availableBytes/buildBytes)))
}
