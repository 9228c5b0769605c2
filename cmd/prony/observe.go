//go:build linux && !portable

package main

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/suite"
	"prony.example/internal/trial/lab"
)

// observeFlags are the settings of telemetry and agents of a run.
type observeFlags struct {
	telemetry []string
	agents    []string
	profile   []string
	inWindow  bool
	traces    string
}

const (
	embedded    = "embedded"
	lgtm        = "lgtm" // embedded, and Grafana's stack
	otlpPrefix  = "otlp="
	usualTraces = suite.Percent(0.05)
)

// otlpSchemes are the schemes of endpoints for OTLP.
var otlpSchemes = []string{"http", "https", "grpc", "grpcs"}

func (f *observeFlags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.StringSliceVar(&f.telemetry, "telemetry", nil, "observe an additional trial of each "+
		"target: metrics, logs, traces, a profile. Stored with the run (default), sent to "+
		"another endpoint (--telemetry=otlp=URL), both (--telemetry=embedded,otlp=URL), or "+
		"stored and sent to Grafana's stack of prony stack up (--telemetry=lgtm)")
	fs.Lookup("telemetry").NoOptDefVal = embedded
	fs.StringSliceVar(&f.agents, "agent", nil, "attach this agent, instead of the suite's "+
		"agents, to every target that supports it, in separate trials: NAME/LEVEL of prony agents")
	cli.SomeOf(c, &f.profile, "profile", "kinds of profiles that the additional trial records "+
		"(with --telemetry: cpu)", suite.ProfileKinds...)
	fs.BoolVar(&f.inWindow, "profile-in-window", false, "record the profiles in the windows of "+
		"the comparison's own trials, so its numbers include the cost of profiling")
	fs.StringVar(&f.traces, "traces", "", "share of the additional trial's requests that carry a "+
		"trace id (with --telemetry: "+usualTraces.String()+")")
}

// wish adds the flags to a wish: the changes of the suite, and the destination of telemetry.
func (f *observeFlags) wish(to *lab.Wish) (err error) {
	o, w := &to.Override, suite.Observe{Profile: f.profile}
	o.Agents = f.agents
	if f.traces != "" {
		if err := w.Traces.UnmarshalText([]byte(f.traces)); err != nil {
			return cli.Usagef("--traces: %w", err)
		}
	}
	if to.Telemetry, err = f.destination(); err != nil {
		return cli.Usage(err)
	}
	if f.traces != "" && len(f.telemetry) == 0 {
		return cli.Usagef("--traces needs --telemetry, which collects the traces")
	}
	if f.inWindow {
		if len(f.profile) != 1 {
			return cli.Usagef("--profile-in-window needs exactly one kind in --profile, because " +
				"most profilers can record only one at a time")
		}
		o.InWindow, w.Profile = f.profile, nil
	}
	if len(f.telemetry) > 0 {
		w.Telemetry, w.GC, o.Watching = true, true, lab.Observers
		if f.traces == "" {
			w.Traces = usualTraces
		}
		if len(w.Profile) == 0 && !f.inWindow {
			w.Profile = suite.ProfileKinds[:1]
		}
	}
	o.Observed, o.Watch = !w.IsZero(), w
	return nil
}

// destination returns the destination of telemetry.
func (f *observeFlags) destination() (out lab.Telemetry, err error) {
	all := f.telemetry
	if at := slices.Index(all, lgtm); at >= 0 {
		all = slices.Replace(slices.Clone(all), at, at+1, embedded, otlpPrefix+stackOTLP)
		out.Stack = stackOTLP
	}
	out.Wanted = len(all) > 0
	for _, t := range all {
		text, ok := strings.CutPrefix(t, otlpPrefix)
		if !ok && t != embedded {
			return out, fmt.Errorf("--telemetry=%s must be %s, %sURL, both with a comma, or %s", t,
				embedded, otlpPrefix, lgtm)
		}
		if !ok {
			continue
		}
		at, err := url.Parse(text)
		if err == nil && at.User != nil {
			return out, errors.New("--telemetry: do not write a password on the command line, " +
				"which every record contains; use an endpoint on this machine that adds the " +
				"password")
		}
		if err != nil || at.Host == "" || !slices.Contains(otlpSchemes, at.Scheme) {
			return out, fmt.Errorf("--telemetry=%s must have the form %shttp://HOST:4318 or "+
				"%sgrpc://HOST:4317; schemes are http, https, grpc or grpcs", t, otlpPrefix,
				otlpPrefix)
		}
		if out.Forward != "" {
			return out, errors.New("--telemetry: name at most one other endpoint")
		}
		out.Forward = text
	}
	out.ForwardOnly = out.Forward != "" && !slices.Contains(all, embedded)
	return out, nil
}

// misplaced reports a suite's name that is the value of --telemetry or --wait after a blank instead
// of an equals sign.
func misplaced(args []string) error {
	for _, a := range args {
		if strings.HasPrefix(a, otlpPrefix) || strings.HasPrefix(a, embedded) || a == lgtm {
			return cli.Usagef("%s is not a suite; write --telemetry=%s, with an equals "+
				"sign", a, a)
		}
		if _, err := time.ParseDuration(a); err == nil {
			return cli.Usagef("%s is not a suite; write --wait=%s, with an equals sign", a, a)
		}
	}
	return nil
}
