package runs

import (
	"fmt"
	"slices"
	"strings"

	"prony.example/internal/analysis/table"
	"prony.example/internal/analysis/wording"
	"prony.example/internal/report/compare"
	"prony.example/record"
)

// mostAnswers is the largest number of targets that are compared with the baseline in sentences. A
// run of more targets is a ranking.
const mostAnswers = 2

// Answer describes how a target of a run differs from the run's baseline.
type Answer struct {
	Baseline, Target string
	compare.Comparison
}

// decides reports whether any metric has an interval.
func (a Answer) decides() bool {
	for _, p := range a.Pairs {
		for _, r := range p.Rows {
			if r.Ratio != nil && r.Ratio.HasInterval() {
				return true
			}
		}
	}
	return false
}

// Sentences returns the answer in words, as prony versus prints it: the primary metric comes first.
func (a Answer) Sentences() []string {
	return a.Comparison.Sentences(a.Baseline, a.Target)
}

// Answers compares the other targets with the run's baseline. It returns none if there are more
// than mostAnswers of them, if the run has no baseline, or if no metric could be compared. A
// control is the baseline itself and has no answer.
func (r *Run) Answers(study *table.Study) (answers []Answer) {
	var names []string
	baseline := ""
	for _, sc := range study.Scenarios {
		if t := sc.Find(r.Head.Baseline); t != nil {
			baseline = t.Name
		}
		for _, t := range sc.Targets {
			if t.Info.ControlOf == "" && t.Info.Name != r.Head.Baseline+record.AgainSuffix {
				names = table.AddNew(names, t.Name)
			}
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == baseline })
	if baseline == "" || len(names) > mostAnswers {
		return nil
	}
	metrics := compare.DecidedBy(r.decidedBy())
	for _, name := range names {
		from, to := r.Side(baseline), r.Side(name)
		from.Study, to.Study = study, study
		c, err := compare.Compare(from, to, compare.Options{Metrics: metrics, First: metrics})
		if err != nil { // the methods differ, and the table has the reasons
			continue
		}
		answer := Answer{Baseline: baseline, Target: name, Comparison: c}
		if answer.decides() && len(answer.Sentences()) > 0 {
			answers = append(answers, answer)
		}
	}
	return answers
}

// OnlyLoad returns the record of a run that is a single load of prony load, whose verdict is the
// answer; nil: the run is another one.
func (r *Run) OnlyLoad(study *table.Study) *record.Record {
	if len(r.Head.Trials) > 0 || len(study.Records) != 1 {
		return nil
	}
	return study.Records[0]
}

// VerdictOf names a load and the grade of its record.
func VerdictOf(suite string, only *record.Record) string {
	return fmt.Sprintf("%s of %s: %s", suite, table.RowName(only.Target), only.Verdict.Grade)
}

// verdictText is the verdict on a load with its reasons, in the words of prony load.
func verdictText(suite string, only *record.Record) string {
	text := VerdictOf(suite, only) + "."
	reasons, _ := wording.Reasons(only.Verdict)
	for _, reason := range reasons {
		text += " " + reason.Observed + "."
	}
	return text
}

// AnswerTexts returns the answers in words: a text for each target, for the only load, or for each
// scenario of a ranking. Of several scenarios, it has the first sentences.
func (r *Run) AnswerTexts(study *table.Study) (texts []string) {
	for _, answer := range r.Answers(study) {
		texts = append(texts, strings.Join(answer.Sentences(), " "))
	}
	if only := r.OnlyLoad(study); only != nil {
		texts = append(texts, verdictText(r.Head.Suite, only))
	}
	if len(texts) > 0 {
		return texts
	}
	for _, sc := range study.Scenarios {
		switch sentences := Standing(sc); {
		case len(sentences) > 0 && len(study.Scenarios) > 1:
			texts = append(texts, sc.Name+": "+sentences[0])
		case len(sentences) > 0:
			texts = append(texts, strings.Join(sentences, " "))
		}
	}
	return texts
}

// decidedBy returns the word of --by in the run's command, or "".
func (r *Run) decidedBy() string {
	for i, arg := range r.Head.Command {
		word, joined := strings.CutPrefix(arg, "--by=")
		if arg == "--by" && i+1 < len(r.Head.Command) {
			word, joined = r.Head.Command[i+1], true
		}
		if joined && slices.Contains(compare.Decisive, word) {
			return word
		}
	}
	return compare.Decisive[0]
}
