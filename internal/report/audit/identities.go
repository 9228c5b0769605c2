package audit

// checkIdentities finds records and loads whose numbers do not agree with each other. Other verbs
// leave such records out, or show them as INVALID if they were saved so.
func checkIdentities(d *Document) (hits []hit, checked bool) {
	for _, v := range d.violated {
		hits = append(hits, hit{Contradiction, v.line, v.trial, v.err.Error(),
			"the record was damaged or changed, or Prony has a defect: no verb uses its numbers",
			"measure the trial again with prony run --resume, or restore the record"})
	}
	return hits, d.Kind == runKind || d.Kind == loadKind
}

// Kinds of documents: a run's folder, and the JSON of prony load.
const (
	runKind  = "a run of Prony"
	loadKind = "a load of Prony"
)
