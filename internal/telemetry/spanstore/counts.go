package spanstore

// Counts is what became of spans or of log records. Once a trial has ended, Received = Kept +
// Dropped.
type Counts struct {
	Received int64
	Kept     int64            // as records, or as spans of kept traces
	Dropped  int64            // the others
	Stray    int64            // that belong to no trial under way
	Evicted  int64            // traces or records kept or held at first, then not: no bytes
	Classes  map[string]int64 // traces or records kept, by class; one may be of several

	// Of traces alone.
	Judged   int64 // that were complete, kept or not
	Hurried  int64 // of them, before they were silent: no room
	Cut      int64 // spans beyond what one trace may have
	Overflow int64 // spans that the metrics count as "other"

	// BySeverity counts log records that were received by service and severity; beyond 64 services:
	// "other".
	BySeverity map[string]map[string]int64
}

// Class counts what was kept by its classes.
func (c *Counts) Class(n int64, classes ...string) {
	if c.Classes == nil {
		c.Classes = map[string]int64{}
	}
	for _, class := range classes {
		c.Classes[class] += n
	}
}

// Severity counts log records.
func (c *Counts) Severity(service, severity string, n int64) {
	if c.BySeverity == nil {
		c.BySeverity = map[string]map[string]int64{}
	}
	if c.BySeverity[service] == nil && len(c.BySeverity) >= maxServices {
		service = other
	}
	if c.BySeverity[service] == nil {
		c.BySeverity[service] = map[string]int64{}
	}
	c.BySeverity[service][severity] += n
}

// Add adds others up.
func (c *Counts) Add(d Counts) {
	c.Received += d.Received
	c.Kept += d.Kept
	c.Dropped += d.Dropped
	c.Stray += d.Stray
	c.Evicted += d.Evicted
	c.Judged += d.Judged
	c.Hurried += d.Hurried
	c.Cut += d.Cut
	c.Overflow += d.Overflow
	for class, n := range d.Classes {
		c.Class(n, class)
	}
	for service, by := range d.BySeverity {
		for severity, n := range by {
			c.Severity(service, severity, n)
		}
	}
}
