package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"prony.example/home/tsdb"
	"prony.example/internal/base/cli"
	"prony.example/internal/base/files"
	"prony.example/internal/base/portguard"
	"prony.example/internal/telemetry"
	"prony.example/internal/telemetry/flags"
	"prony.example/record"
)

// query queries the database of the run in the folder q.Run.
func (p *program) query(ctx context.Context, q flags.Query) (err error) {
	db := telemetry.DatabaseIn(q.Run)
	if db == "" {
		return fmt.Errorf("query %s: the run has no metrics; repeat the run with --telemetry",
			q.Run)
	}
	s, err := tsdb.OpenReadOnly(db, tsdb.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	switch {
	case q.List:
		list, err := s.List(ctx)
		if err != nil {
			return err
		}
		return files.Print(p.stdout, q.Out, func(w io.Writer) error {
			return tsdb.PrintList(w, list)
		})
	case q.Serve != "":
		return p.serveMetrics(ctx, s, q.Serve)
	}
	answer, err := ask(ctx, s, q)
	if err != nil {
		return err
	}
	print := map[string]func(io.Writer) error{
		"text": answer.Text, "json": answer.JSON, "csv": answer.CSV,
	}[q.Format]
	return files.Print(p.stdout, q.Out, print)
}

func ask(ctx context.Context, s *tsdb.Store, q flags.Query) (*tsdb.Answer, error) {
	w := tsdb.Window{Trial: q.Trial}
	var ok bool
	if w.From, w.To, ok = s.Bounds(); !ok {
		return nil, fmt.Errorf("query %s: the run has no samples", q.Run)
	}
	if q.Trial != "" {
		if err := windowOf(q.Run, q.Trial, &w); err != nil {
			return nil, err
		}
	}
	w.Step = cmp.Or(q.Step, tsdb.StepFor(w.To.Sub(w.From)))
	switch q.At {
	case "":
		return s.Query(ctx, q.Expr, w)
	case "end":
		return s.QueryEnd(ctx, q.Expr, w)
	}
	moment, err := q.Moment()
	if err != nil {
		return nil, err
	}
	return s.Query(ctx, q.Expr, tsdb.Window{From: moment, To: moment, Trial: q.Trial})
}

// windowOf sets the time range of a trial from its record.
func windowOf(dir, trial string, w *tsdb.Window) error {
	_, records, _, err := record.Read(dir)
	if err != nil {
		return err
	}
	var ids []string
	for _, r := range records {
		if r.Trial == trial {
			w.From, w.To = r.Time, r.Time.Add(time.Duration(r.DurationNs))
			return nil
		}
		ids = append(ids, r.Trial)
	}
	return cli.Usagef("--trial %s: the run has only the trials %s", trial, strings.Join(ids, ", "))
}

// maxConns is the largest number of concurrent connections to kept metrics.
const maxConns = 1024

// admitted marks the connection of an answered request, so that it makes no room for others: kept
// metrics have no token.
func admitted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r)
		portguard.Admit(r)
	})
}

// serveMetrics answers queries until the command ends.
func (p *program) serveMetrics(ctx context.Context, s *tsdb.Store, address string) error {
	most, few, err := portguard.Fit(1, maxConns, 1)
	if err != nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	if few != "" {
		p.report("it accepts " + few)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("serve metrics: %w; use another address, such as 127.0.0.1:0", err)
	}
	from, to, _ := s.Bounds()
	fmt.Fprintf(p.stdout, "http://%s serves the API of Prometheus, from %s to %s; Ctrl-C ends "+
		"the server\n",
		l.Addr(), from.Format(time.RFC3339), to.Format(time.RFC3339))
	srv := &http.Server{Handler: portguard.Guard(portguard.Protected(admitted(s.Handler()))),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 2 * time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	guard := portguard.New(l, portguard.Options{Most: most, Report: func(n portguard.Refused) {
		p.report(fmt.Sprintf("closed %s without a complete request, because %d were open",
			n.Connections(), most))
	}})
	guard.Watch(srv)
	ended := context.AfterFunc(ctx, func() { srv.Close() })
	defer ended()
	if err := srv.Serve(guard); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}
