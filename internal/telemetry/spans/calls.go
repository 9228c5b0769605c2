package spans

// MetricsFile holds the span metrics, beside telemetry.SpansFile: a line an operation and trial.
const MetricsFile = "spanmetrics.ndjson"

// Bounds of the duration's buckets in ms: the connector's own, which begin at 2, and finer ones
// below and between, because answers within 100 µs are usual here.
var Bounds = []float64{.05, .1, .2, .3, .5, .7, 1, 1.5, 2, 3, 4, 6, 8, 10, 15, 20, 30, 50, 70, 100,
	150, 200, 300, 400, 600, 800, 1000, 1400, 2000, 5000, 10000, 15000}

// Attributes of a resource that name the trial: on what comes in, when several trials run at once;
// on span metrics always.
const (
	TrialAttribute  = "prony.trial"
	TargetAttribute = "prony.target"
)

// Calls are the span metrics of one operation in one trial, a line of spanmetrics.ndjson.
type Calls struct {
	Trial   string `json:"trial"`
	Target  string `json:"target"`
	FromNs  int64  `json:"fromNs"` // the trial's begin and end, Unix time
	ToNs    int64  `json:"toNs"`
	Service string `json:"service"`
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Status  string `json:"status,omitempty"`
	Calls   int64  `json:"calls"`
	SumNs   int64  `json:"sumNs"`
	MinNs   int64  `json:"minNs"`
	MaxNs   int64  `json:"maxNs"`
	// Buckets count the calls by duration, bucket i those up to Bounds[i] ms, the last the others.
	Buckets []uint64 `json:"buckets"`
}

// Quantile of durations in ns, 0 to 1, by interpolation inside the bucket that holds it, as
// Prometheus' histogram_quantile does; the outermost buckets end at the least and the greatest.
func (c *Calls) Quantile(q float64) int64 {
	rank := q * float64(c.Calls)
	var below float64
	for i, n := range c.Buckets {
		if n == 0 || below+float64(n) < rank {
			below += float64(n)
			continue
		}
		lo, hi := c.MinNs, c.MaxNs
		if i > 0 {
			lo = max(lo, int64(Bounds[i-1]*1e6))
		}
		if i < len(Bounds) {
			hi = min(hi, int64(Bounds[i]*1e6))
		}
		return lo + int64(float64(hi-lo)*(rank-below)/float64(n))
	}
	return c.MaxNs
}
