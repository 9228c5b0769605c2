package record

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"prony.example/internal/base/jsontree"
)

// Records of version 1, and of version 2 before its first release, have former names for some keys
// and values. These are replaced before decoding, so that no other code has to know them.
// docs/formats/README.md lists them.

// renamedKeys maps the path of a former key to its current name. A path is the former keys of the
// enclosing objects, joined by dots; arrays add nothing.
var renamedKeys = map[string]string{
	"watched":                         "instruments",
	"before":                          "hostBefore",
	"before.why":                      "reason",
	"before.throttledN":               "throttleEvents",
	"target.at":                       "url",
	"target.swept":                    "matrix",
	"limits.homeCores":                "telemetryCores",
	"limits.rights":                   "privileges",
	"pod.shared":                      "coresSharedWith",
	"pod.away":                        "apiOutages",
	"pod.away.ns":                     "durationNs",
	"telemetry.voices":                "sources",
	"telemetry.home":                  "collector",
	"warmup.silentAtNs":               "compilersIdleAtNs",
	"warmup.favoured":                 "prioritizedThreads",
	"warmup.narrowedAtNs":             "coresReducedAtNs",
	"warmup.reopenedAtNs":             "reconnectedAtNs",
	"loads.leadNs":                    "leadInNs",
	"loads.grown":                     "connectionsAdded",
	"loads.carriedMean":               "carriedInMean",
	"loads.leftMean":                  "carriedOutMean",
	"loads.process":                   "arrivalProcess",
	"loads.memory":                    "autocorrelation",
	"loads.memory.effective":          "effectiveShare",
	"loads.openedAtNs":                "windowOpenedUnixNs",
	"loads.openedNs":                  "windowOpenedMonotonicNs",
	"loads.told":                      "windowTelemetry",
	"loads.asks":                      "backendCalls",
	"loads.asks.of":                   "counter",
	"loads.asks.what":                 "unit",
	"loads.asks.betweenNs":            "intervalNs",
	"loads.asks.lateNs":               "delayNs",
	"loads.asks.wanted":               "expected",
	"loads.asks.restPerS":             "idlePerS",
	"loads.errors.unasked":            "unsolicited",
	"loads.search.perS":               "ratePerS",
	"loads.search.heldPerS":           "metPerS",
	"loads.search.steps.word":         "outcome",
	"loads.search.steps.why":          "reason",
	"loads.traced.why":                "class",
	"loads.generator.turns":           "iterations",
	"loads.generator.stillMaxNs":      "stallMaxNs",
	"loads.generators.stillMaxNs":     "stallMaxNs",
	"loads.service.roles.collectorNs": "gcNs",
	"loads.service.roles.eitherNs":    "compilerOrGCNs",
	"provenance.sceneHash":            "scenarioHash",
	"provenance.rides":                "variantEnv",
	"host.checks.wanted":              "expected",
	"host.checks.why":                 "impact",
}

// renamedInFindings maps former keys inside findings, at all places of a record with findings.
var renamedInFindings = map[string]string{
	"remark":         "note",
	"moves":          "possibleBias",
	"moves.number":   "metric",
	"moves.by":       "share",
	"facts.of":       "total",
	"facts.parts.of": "total",
	"facts.said":     "messages",
	"facts.left":     "unusedShare",
	"facts.waited":   "waitingShare",
	"facts.what":     "subject",
	"facts.advice":   "hint",
}

// renamedRules maps the former name of a rule to the current one.
var renamedRules = map[string]string{
	"foreign":     "third-party tool",
	"neighbours":  "neighbors",
	"stood still": "stalled",
	"unasked":     "backend calls",
}

// renamedOutcomes maps former outcomes of the steps of a search to current ones.
var renamedOutcomes = map[string]string{"held": "met", "broken": "missed"}

// deepestRenamed is the maximum number of objects and arrays around a former key.
const deepestRenamed = 10

var allRenamed = sync.OnceValue(func() map[string]string {
	out := maps.Clone(renamedKeys)
	for _, place := range []string{"verdict.findings.", "loads.generators.findings."} {
		for key, name := range renamedInFindings {
			out[place+key] = name
		}
	}
	return out
})

// Upgrade replaces former keys of a document: a record, the head of a run, or a load as prony load
// prints it. It returns a document without former keys unchanged.
func Upgrade(document []byte) []byte {
	var (
		out    []byte
		copied int      // bytes of document already in out
		path   []string // keys of the enclosing objects, each with a dot; empty for arrays
		key    string   // of the next value
	)
	renamed := allRenamed()
	for i := 0; i < len(document); i++ {
		switch document[i] {
		case '{', '[':
			if key == "load." && len(path) == 1 {
				key = "loads."
			}
			path, key = append(path, key), ""
		case '}', ']':
			path, key = path[:max(len(path)-1, 0)], ""
		case ',':
			key = ""
		case '"':
			end := jsontree.EndOfText(document, i)
			if !jsontree.IsKey(document, end) {
				i = end
				continue
			}
			key = string(document[i+1:end]) + "."
			if len(path) <= deepestRenamed {
				former := strings.Join(path, "") + key
				if name, is := renamed[former[:len(former)-1]]; is {
					out = append(append(out, document[copied:i+1]...), name...)
					copied = end
				}
			}
			i = end
		}
	}
	if out == nil {
		return document
	}
	return append(out, document[copied:]...)
}

// upgradeValues replaces former values of a record.
func (r *Record) upgradeValues() {
	upgradeRules(r.Verdict.Findings)
	for i := range r.Loads {
		l := &r.Loads[i]
		for j := range l.Generators {
			upgradeRules(l.Generators[j].Findings)
		}
		if l.Search == nil {
			continue
		}
		for j := range l.Search.Steps {
			rename(&l.Search.Steps[j].Outcome, renamedOutcomes)
		}
	}
}

func upgradeRules(findings []Finding) {
	for i := range findings {
		rename(&findings[i].Rule, renamedRules)
		for j := range findings[i].Facts.Parts {
			rename(&findings[i].Facts.Parts[j].Rule, renamedRules)
		}
	}
}

func rename(name *string, names map[string]string) {
	if now, is := names[*name]; is {
		*name = now
	}
}

// renamedColumns maps former names of a table's columns to current names.
var renamedColumns = map[string]string{"asks": "backendCalls", "collector": "gc"}

// upgradeColumns replaces former column names of the head.
func (r *Run) upgradeColumns() {
	r.Columns = slices.Clone(r.Columns)
	for i := range r.Columns {
		rename(&r.Columns[i], renamedColumns)
	}
}
