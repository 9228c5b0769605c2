//go:build linux && !portable

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/service"
	"prony.example/internal/trial/lab"
)

func (a *app) buildCmd() *cobra.Command {
	jobs, images := 0, false
	c := &cobra.Command{
		Use:   "build [SERVICE[/TARGET]...]",
		Short: "Build services (default: all that can be built here)",
		Args:  cobra.ArbitraryArgs,
		Long: `Build makes the artifacts of services, each in a private copy of its folder below
.prony/build. Build runs several builds at once if CPUs and memory allow it. Build reuses a result
if sources, steps and tool versions are the same. build.log beside the copy has the output of the
steps. Run builds by itself. After a successful build, copies of the same build that nothing has
used for 7 days are removed, unless a run still uses them.

With --images, build also makes the container image of each service from its Dockerfile, with
Docker, and records its size. The size is in tables with the column "image". The image of a service
whose tools are missing here is also made.`,
		Example: "  prony build\n  prony build java-netty rust-axum",
		RunE: func(c *cobra.Command, args []string) error {
			if jobs < 0 {
				return cli.Usagef("--jobs must be at least 0, got %d", jobs)
			}
			services, err := a.catalog(args...)
			if err != nil {
				return err
			}
			return a.build(c.Context(), services, len(args) > 0, jobs, images)
		},
	}
	c.Flags().IntVar(&jobs, "jobs", 0,
		"number of builds at once; 0: CPUs + 1, and at most one for each 2 GiB of free "+
			"memory")
	c.Flags().BoolVar(&images, "images", false, "also build the container images (needs Docker)")
	return c
}

// build builds services. One whose tools are missing is skipped unless the user asked for it by its
// name.
func (a *app) build(ctx context.Context, services lab.Catalog, asked bool, jobs int,
	images bool) error {
	l, _, err := a.lab()
	if err != nil {
		return err
	}
	tools := service.FindTools(ctx)
	var able, contained lab.Catalog
	for _, s := range services {
		missing := tools.Missing(s)
		switch {
		case len(missing) == 0:
			able = append(able, s)
		case images && s.NoImage(s.Targets[0]) == "":
			contained = append(contained, s)
		// A further build, such as a native one, is skipped even if its service is named.
		case !asked || s.Other != "":
			fmt.Fprintf(a.stdout, "skipped %s: %s\n", s.Label(), missing[0])
		default:
			able = append(able, s)
		}
	}
	var errs []error
	b := l.Builder(tools)
	for _, s := range contained {
		built, err := a.world.Image(ctx, b, s)
		if errors.Is(err, service.ErrNoDocker) {
			return err
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintf(a.stdout, "%-22s only its image, %.1f MiB: %s\n", s.Label(),
			mebibytes(built.ImageBytes), tools.Missing(s)[0])
	}
	for i, o := range lab.BuildAll(ctx, a.world.Build, b, able, jobs) {
		if o.Err == nil && images {
			o.Err = weigh(ctx, b, able[i], o.Built)
		}
		if o.Err != nil {
			errs = append(errs, o.Err)
			if errors.Is(o.Err, service.ErrNoDocker) {
				break // the others would fail in the same way
			}
			continue
		}
		how := fmt.Sprintf("built in %.1f s", float64(o.Built.DurationNs)/1e9)
		if o.Built.Cached {
			how = "unchanged"
		}
		if o.Built.ImageBytes > 0 {
			how += fmt.Sprintf(", image %.1f MiB", mebibytes(o.Built.ImageBytes))
		}
		fmt.Fprintf(a.stdout, "%-22s %8.1f MiB  %s  %s\n", able[i].Label(),
			mebibytes(o.Built.SizeBytes), o.Built.SHA256[:12], how)
	}
	return errors.Join(errs...)
}

// weigh builds the image of a service that has one, and stores its size with the build.
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
