package telemetry

import (
	"errors"
	"fmt"
	"slices"
)

// Lab is the service.name of Prony's own telemetry.
const Lab = "prony"

// Own holds Prony's own metrics and marks of a trial or a run. They are stored like other
// telemetry, but not counted as sent by services.
type Own struct {
	Trial Trial `json:"trial"`
	// Marks are marks of a trial that were not sent while it ran, in order.
	Marks  []Mark   `json:"marks,omitempty"`
	Series []Series `json:"series,omitempty"`
}

// Series is one of Prony's own metrics with one set of labels: a gauge over time.
type Series struct {
	Name   string            `json:"name"`   // name of one of Metrics
	Labels map[string]string `json:"labels"` // empty values count as missing
	WallNs []int64           `json:"wallNs"` // Unix time, ascending
	Values []float64         `json:"values"` // finite, one for each time
	// UntilNs is the time at which the series ends, so that its last value does not count as
	// present; 0: no end.
	UntilNs int64 `json:"untilNs,omitempty"`
}

// Check returns an error if a series is invalid.
func (s Series) Check() error {
	known := slices.ContainsFunc(Metrics, func(m Metric) bool { return m.Name == s.Name })
	switch {
	case !known:
		return fmt.Errorf("series %q: Prony has no metric with this name", s.Name)
	case len(s.WallNs) == 0 || len(s.WallNs) != len(s.Values):
		return fmt.Errorf("series %s: there are %d times for %d values", s.Name, len(s.WallNs),
			len(s.Values))
	case !slices.IsSorted(s.WallNs) || s.UntilNs != 0 && s.UntilNs <= s.WallNs[len(s.WallNs)-1]:
		return errors.New("series " + s.Name + ": the times do not ascend")
	}
	return nil
}

// Subjects of a metric's values.
const (
	Second = "second" // a second of a window; for windows above 10 minutes, 1/600 of the window
	Window = "window" // a complete window: all its seconds have the same value
	Load   = "load"   // a load: one value, sent after the trial
	Whole  = "trial"  // all loads of a trial: one value, sent after it
	Run    = "run"    // a run: one value, sent at its end
)

// CommonLabels are the labels of all Metrics, except those that belong to no load or no single
// trial. An arm is an attached agent, named as in tables; a role is the reason for a trial outside
// of the comparison. Both are empty, which counts as missing, for compared trials without an agent.
var CommonLabels = []string{"run", "trial", "target", "scenario", "load", "block", "launcher",
	"arm", "role"}

// Metric is one of Prony's own metrics. All are gauges in base units, named as Prometheus
// recommends (https://prometheus.io/docs/practices/naming/).
type Metric struct {
	Name   string
	Labels []string // in addition to CommonLabels
	Of     string
	Help   string
}

// Metrics are all metrics that Prony sends about its runs, except prony_phase.
// docs/formats/metrics.md lists them.
var Metrics = []Metric{
	{"prony_load_requests_per_second", []string{"state"}, Second,
		"rate of requests that were due (open loads), sent, answered or failed"},
	{"prony_load_latency_seconds", []string{"quantile"}, Second,
		"response times of answered requests, from when they were due"},
	{"prony_load_outstanding", nil, Second,
		"open loads: number of requests that became due in the window and have not ended"},
	{"prony_generator_lag_seconds", []string{"quantile"}, Window,
		"open loads: delay between due and sent"},
	{"prony_generator_cpu_cores", nil, Second,
		"CPU cores that Prony and any other load generator used"},
	{"prony_generator_busiest_share", nil, Window,
		"utilization of its core by the busiest load thread"},
	{"prony_generator_delayed_share", nil, Window,
		"share of the window in which load threads were ready but did not run, as a sum over " +
			"threads"},
	{"prony_generator_ceiling_per_second", nil, Window,
		"closed loads: highest rate of the generator against a null server"},
	{"prony_service_cpu_cores", nil, Second, "CPU cores that the service used"},
	{"prony_service_memory_bytes", nil, Second, "highest resident memory of the service"},
	{"prony_service_threads", nil, Second, "highest number of threads of the service"},
	{"prony_service_throttled_share", nil, Window,
		"share of the window in which the CPU limit throttled the service"},
	{"prony_host_cpu_share", []string{"mode"}, Second,
		"share of all CPU time, by use: busy, steal (hypervisor), other programs (per window)"},
	{"prony_host_pressure_share", []string{"resource"}, Window,
		"share of the window in which a task waited for cpu, memory or io (PSI, some)"},
	{"prony_trial_throughput_per_second", nil, Load, "good answers"},
	{"prony_trial_latency_seconds", []string{"quantile"}, Load,
		"response times of loads whose rate the target reached"},
	{"prony_trial_error_share", nil, Load, "failed requests, as a share of ended requests"},
	{"prony_trial_cpu_seconds_per_request", nil, Load, "CPU time of the service"},
	{"prony_trial_memory_peak_bytes", nil, Load, "highest resident memory of the service"},
	{"prony_trial_network_bytes_per_request", nil, Load,
		"bytes on the service's network interface, in both directions"},
	{"prony_trial_allocated_bytes_per_request", nil, Load,
		"bytes allocated on the heap, if garbage collections were logged"},
	{"prony_trial_heap_after_gc_bytes", nil, Load,
		"heap after the last garbage collection, if logged"},
	{"prony_trial_gc_paused_share", nil, Load,
		"share of the window in garbage collection pauses, if logged"},
	{"prony_trial_spans_per_request", nil, Load, "spans that the telemetry collector received"},
	{"prony_trial_verdict", []string{"grade"}, Whole, "always 1; the label has the trial's grade"},
	{"prony_trial_reason", []string{"reason", "grade"}, Whole,
		"always 1; one series per rule that the trial broke, with the load if the rule is about " +
			"a load"},
	{"prony_trial_start_seconds", nil, Whole, "time from exec to ready"},
	{"prony_trial_duration_seconds", nil, Whole, "time from the trial's first step to its last"},
	{"prony_trial_bytes_per_request", nil, Whole,
		"bytes of telemetry that the service sent, as OTLP without compression"},
	{"prony_trial_home_cpu_cores", nil, Whole, "CPU cores that the telemetry collector used"},
	{"prony_trial_home_memory_bytes", nil, Whole,
		"memory of the telemetry collector, at the trial's end"},
	{"prony_trial_sampler_cpu_cores", nil, Whole, "CPU cores that sampling the service used"},
	{"prony_result", []string{"metric", "unit", "bound"}, Run,
		"values of the table: median of trials, and its interval from low to high"},
}

// LiveMetrics are the metrics that prony load --otlp sends every second, as Prometheus names them.
// docs/formats/load-live.md lists them with OpenTelemetry's names.
var LiveMetrics = []string{"prony_load_backlog", "prony_load_done_total", "prony_load_due_total",
	"prony_load_failed_total", "prony_load_in_flight", "prony_load_lag_seconds",
	"prony_load_received_bytes_total", "prony_load_response_seconds", "prony_load_sent_total",
	"prony_load_window_ratio"}
