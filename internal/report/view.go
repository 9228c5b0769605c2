package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"prony.example/internal/analysis/table"
	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/units"
	"prony.example/internal/report/runs"
	"prony.example/record"
	"prony.example/stats"
)

// view has the data of the page's template.
type view struct {
	frame
	table.Sheet
	Title     string
	Headline  string // the answer, or the title
	Answers   []answerView
	Why       []wording.Reason // of the verdict on the only load, which is the headline
	Noted     string           // the rules of its findings that do not count
	Run       string
	Date      string
	Excluded  []table.Tally // trials that are excluded from results
	Scenarios []scenarioView
	Trials    []trialView
	Count     int         // of all trials
	LeftOut   string      // the trials that are not in Trials; empty: none
	Batches   []batchView // the trials, if there are many
	Prony     string
	Warnings  []warning
	Reasons   bool // whether any of the excluded trials has one
	Timeline  timeline
	Shared    shared
	Host      *hostView

	Confidence, Repeat string // for the figures of answers
}

// answerView describes how a target differs from the baseline: in words, then drawn.
type answerView struct {
	Lead   string // the sentence on the primary metric; empty: it is the page's headline
	Brief  string // the sentences on other metrics
	Forest *strip
}

type scenarioView struct {
	Number     int
	Table      tableView
	Figures    figuresView
	Flame      *flameView
	Others     []tableView // tables other than the comparison
	Folded     bool        // as mostUnfolded has it
	Confidence string
}

// tableView is a table.Table prepared for HTML: spanning headings and cells with links.
type tableView struct {
	table.Table
	Number int
	Groups []groupView
	Starts []bool // whether a column begins a group
	Extra  bool   // whether there are columns that readers can hide
	Ratios bool   // whether there are ratios to the baseline
	Rows   []rowView
}

// groupView has two spans: of all columns, and of those that are not extra.
type groupView struct {
	Heading    string
	Span, Lean int
}

type rowView struct {
	table.Row
	Step  bool // a new tier begins here
	Ramp  int  // the color of its tier
	Rest  groupView
	Cells []cellView
}

type cellView struct {
	Text, Range string // the number, and its interval unless it has a column
	unknown     bool   // whether the interval in Range is unknown
	Refs        []int
	Column      table.Column
	First       bool
}

func viewOf(s table.Study, o HTMLOptions, d pageData) view {
	sheet := s.Sheet()
	suite, run := origins(s)
	v := view{
		Sheet: sheet, Title: cmp.Or(o.Title, suite), Run: run, Excluded: excluded(sheet.Verdicts),
	}
	v.Head = v.Head.Under(v.Title)
	if v.answer(s, o.Answers); o.Only != nil {
		v.verdict(o.Only)
	}
	if len(s.Records) > 0 {
		v.Date = s.Records[0].Time.UTC().Format("2 January 2006, 15:04 UTC")
		v.Prony = s.Records[0].Provenance.Prony
	}
	// The sheet has a table per scenario, then others, each with a kind and a scenario.
	if len(s.Scenarios) == 0 { // nothing was measured; skipped targets still have a table
		for i, tab := range sheet.Tables {
			v.Scenarios = append(v.Scenarios, scenarioView{Number: i + 1,
				Table: tableViewOf(tab, i+1)})
		}
	}
	for i, sc := range s.Scenarios {
		part := scenarioView{
			Number: i + 1, Table: tableViewOf(sheet.Tables[i], i+1),
			Figures:    figuresOf(sc, d.Scenarios[i]),
			Confidence: fmt.Sprintf("%g %%", 100*s.Options.Confidence),
			Flame:      flameViewOf(s, sc, o, d, i+1), Others: otherTables(sheet, sc.Name),
			Folded: many(len(s.Records)),
		}
		v.Scenarios = append(v.Scenarios, part)
	}
	v.Warnings, v.Timeline = warningsOf(s.Records), timelineOf(s.Records)
	v.Shared, v.Host = sharedOf(s.Records), hostOf(o.Host)
	v.Reasons = slices.ContainsFunc(v.Excluded, func(t table.Tally) bool { return t.Reason != "" })
	v.Count, v.LeftOut = len(s.Records), undescribed(len(s.Records))
	described := detailed(s.Records)
	for i, r := range s.Records {
		if !described.includes(r) {
			continue
		}
		t := trialViewOf(r)
		t.Anchor, t.Facts = trialAnchor(i), v.Shared.without(t.Facts)
		if t.Reproduce == v.Reproduce {
			t.Reproduce = "" // the page has it at the top
		}
		v.Trials = append(v.Trials, t)
	}
	v.Batches = batchesOf(v.Trials)
	return v
}

// batchView has some of many trials, folded as mostUnfolded has it.
type batchView struct {
	Title, Outcomes string
	Trials          []trialView
}

// inBatch is the number of trials of a batch.
const inBatch = 50

// batchesOf returns no batches if the trials are few.
func batchesOf(trials []trialView) (batches []batchView) {
	if !many(len(trials)) {
		return nil
	}
	for part := range slices.Chunk(trials, inBatch) {
		from := len(batches)*inBatch + 1
		b := batchView{Trials: part, Title: fmt.Sprintf("Trials %d to %d", from, from+len(part)-1)}
		var marks []string
		count := map[string]int{}
		for _, t := range part {
			mark := t.Mark
			if t.Class == "none" {
				mark = "with findings"
			}
			marks = table.AddNew(marks, mark)
			count[mark]++
		}
		for i, mark := range marks {
			marks[i] = fmt.Sprintf("%d %s", count[mark], mark)
		}
		b.Outcomes = strings.Join(marks, ", ")
		batches = append(batches, b)
	}
	return batches
}

// answer makes the first answer the page's headline. A ranking keeps its title, and its description
// in links is the ranking.
func (v *view) answer(s table.Study, answers []runs.Answer) {
	v.Headline, v.Description = v.Title, v.Head.String()
	for i, a := range answers {
		sentences := a.Sentences()
		part := answerView{Lead: sentences[0], Brief: strings.Join(sentences[1:], " "),
			Forest: forest(a.Comparison, a.Pairs[0], nil)}
		if part.Forest != nil {
			part.Forest.Caption = a.Target + " relative to " + a.Baseline
			part.Forest.Axis = "ratio to " + a.Baseline +
				", logarithmic; at 1 there is no difference"
		}
		if i == 0 {
			v.Headline, v.Description, part.Lead = part.Lead, part.Brief, ""
		}
		v.Answers = append(v.Answers, part)
		v.Confidence, v.Repeat = fmt.Sprintf("%g %%", 100*a.Confidence), a.Repeat()
	}
	if len(answers) == 0 && len(s.Scenarios) > 0 {
		v.Description = rankingSays(s.Scenarios[0])
	}
	v.Tab = strings.TrimSuffix(v.Headline, ".")
}

// verdict makes the verdict on the only load the headline, in the words of prony load.
func (v *view) verdict(r *record.Record) {
	v.Headline = runs.VerdictOf(v.Title, r)
	v.Tab = v.Headline
	v.Why, v.Noted = wording.Reasons(r.Verdict)
	var observed []string
	for _, reason := range v.Why {
		observed = append(observed, reason.Observed)
	}
	if len(observed) > 0 {
		v.Description = strings.Join(observed, "; ")
	}
}

// otherTables returns a scenario's tables other than its comparison.
func otherTables(sheet table.Sheet, scenario string) (out []tableView) {
	for i, tab := range sheet.Tables {
		if tab.Kind != "" && tab.Scenario == scenario {
			out = append(out, tableViewOf(tab, i+1))
		}
	}
	return out
}

func tableViewOf(tab table.Table, number int) tableView {
	v := tableView{Table: tab, Number: number}
	v.Ratios = slices.ContainsFunc(tab.Columns, func(c table.Column) bool {
		return c.Role == table.RoleRatio
	})
	v.Starts = make([]bool, len(tab.Columns))
	for _, r := range runsOf(tab, columnsOf(tab, table.Extra)) {
		v.Starts[r.first] = r.first > 0
		g := groupView{Heading: tab.Columns[r.first].Group.Heading(), Span: r.last - r.first + 1}
		for _, c := range tab.Columns[r.first : r.last+1] {
			if c.Weight < table.Extra {
				g.Lean++
			}
		}
		v.Groups, v.Extra = append(v.Groups, g), v.Extra || g.Lean < g.Span
	}
	remaining := groupView{}
	for _, g := range v.Groups[1:] {
		remaining.Span, remaining.Lean = remaining.Span+g.Span, remaining.Lean+g.Lean
	}
	tier := 0
	for i, row := range tab.Rows {
		r := rowView{Row: row, Step: i > 0 && row.Tier != tier, Rest: remaining,
			Ramp: min(row.Tier, tierColors)}
		tier = row.Tier
		for k, cell := range row.Cells {
			c := cellView{Text: cell.Number(), Refs: cell.Refs, Column: tab.Columns[k],
				First: v.Starts[k]}
			if !ownColumn(tab, k) {
				c.Range = cell.Range()
				c.unknown = len(c.Range) > 0 && cell.Interval.State == table.Unknown
			}
			r.Cells = append(r.Cells, c)
		}
		v.Rows = append(v.Rows, r)
	}
	v.explainUnknown()
	return v
}

// explainUnknown adds the meaning of unknown if an interval is unknown and no note explains it.
func (v *tableView) explainUnknown() {
	why := table.NoteOf(table.NoteUnknowns)
	unknown := slices.ContainsFunc(v.Rows, func(r rowView) bool {
		return slices.ContainsFunc(r.Cells, func(c cellView) bool { return c.unknown })
	})
	if unknown && !slices.ContainsFunc(v.Notes, why.Same) {
		v.Notes = append(slices.Clone(v.Notes), why)
	}
}

// tierColors is the number of colors for tiers on the page (web/src/tokens.css).
const tierColors = 6

// ownColumn reports whether the column after k has k's interval.
func ownColumn(tab table.Table, k int) bool {
	return k+1 < len(tab.Columns) && tab.Columns[k+1].Role == table.RoleWidth
}

// trialView is one record that readers can expand.
type trialView struct {
	Anchor    string
	Mark      string // "VALID", "2 findings", "INVALID", "failed" or "stopped"
	Class     string // of the mark
	Target    string
	When      string
	Headline  string
	Findings  []findingView
	Failure   *record.Failure
	Log       string
	Loads     []factsView
	Facts     []fact
	Reproduce string
}

// findingView is a finding in words.
type findingView struct{ Rule, Load, Grade, Observed, Against, Hint string }

func findingViews(findings []record.Finding) (out []findingView) {
	for _, f := range findings {
		w := wording.Finding(f)
		out = append(out, findingView{f.Rule, f.Load, f.Grade, w.Observed,
			wording.Against(f), w.Hint})
	}
	return out
}

type factsView struct {
	Title string
	Facts []fact
}

type fact struct{ Name, Value string }

func trialViewOf(r *record.Record) trialView {
	v := trialView{
		Mark: trialMark(r), Class: trialClass(r), Target: table.RowName(r.Target),
		Findings: findingViews(r.Verdict.Findings),
		When: fmt.Sprintf("%s · %s %d · %s in the run · %s", r.Scenario, table.RepeatOf(r),
			r.Block, ordinal(r.Order), r.Time.UTC().Format("15:04:05")),
		Facts: provenanceFacts(r), Reproduce: cmdlog.Join(cmdlog.Repeatable(r.Provenance.Command)),
	}
	if r.Failure != nil {
		v.Failure, v.Findings = r.Failure, nil // the only finding would repeat it
		v.Log = strings.Join(r.Failure.Log, "\n")
		v.Headline = v.Mark + " at " + r.Failure.Step
	}
	if v.Failure == nil && len(r.Loads) > 0 {
		v.Headline = units.Rate(r.Loads[0].ThroughputPerS) + "/s at " + r.Loads[0].Name
	}
	for i := range r.Loads {
		facts := loadFacts(&r.Loads[i])
		if table.LoadGrade(r, r.Loads[i].Name) == record.Invalid {
			facts.Title += ": INVALID, excluded from results"
		}
		v.Loads = append(v.Loads, facts)
	}
	return v
}

// trialMark describes how a trial ended. SUSPECT is the grade of a number, so a trial has findings,
// each of which may concern some of its numbers.
func trialMark(r *record.Record) string {
	if table.Grade(r) != record.Suspect {
		return table.Grade(r)
	}
	n := 0
	for _, f := range r.Verdict.Findings {
		if f.Grade != record.Valid {
			n++
		}
	}
	return units.Plural(n, "finding")
}

func trialClass(r *record.Record) string {
	if table.Grade(r) == record.Suspect {
		return "none"
	}
	return strings.ToLower(table.Grade(r))
}

func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n) + suffix
}

// loadFacts returns the settings and results of a load, with the generator's own condition.
func loadFacts(l *record.Load) factsView {
	ns := units.KnownDuration[int64] // third-party generators do not report all of them
	d := l.ResponseTime
	v := factsView{Title: l.Name + ", " + l.Kind()}
	if s := l.Search; s != nil {
		v.add("search", searchText(s))
	}
	v.add("requests", fmt.Sprintf("%s good responses in %v, %s/s", units.Count(l.Done),
		time.Duration(l.WindowNs), units.Rate(l.ThroughputPerS)))
	if l.Model == record.Open {
		v.add("arrivals", fmt.Sprintf("%s requests due, %s sent, %s without a response; the "+
			"configured rate is %s/s",
			units.Count(l.Scheduled), units.Count(l.Sent), units.Count(l.Censored),
			units.Rate(l.RatePerS)))
	}
	if n := l.Errors.Total(); n > 0 {
		v.add("errors", fmt.Sprintf("%s, the first: %s", units.Count(n), l.Errors.Example))
	} else {
		v.add("errors", "none")
	}
	if d.Count > 0 {
		v.add("response time", fmt.Sprintf("p50 %s, p90 %s, p99 %s, p99.9 %s, max %s",
			ns(d.P50Ns), ns(d.P90Ns), ns(d.P99Ns), ns(d.P999Ns), ns(d.MaxNs)))
	}
	if l.Service.CPUPerRequestNs > 0 {
		v.add("service", fmt.Sprintf("%s of CPU time per request, %s of the service's cores, at "+
			"most %s of memory",
			units.Duration(l.Service.CPUPerRequestNs), units.Percent(l.Service.CPUShare),
			units.Bytes(float64(l.Service.RSSMaxBytes))))
	}
	g := l.Generator
	text := fmt.Sprintf("%s, %s of CPU time per request, busiest thread used %s of a core",
		g.Engine,
		units.Duration(g.CPUPerRequestNs), units.Percent(g.CPUShare))
	if l.OwnLag.Count > 0 {
		text += ", own lag p99 " + ns(l.OwnLag.P99Ns)
	}
	v.add("generator", text)
	v.add("host", fmt.Sprintf("the hypervisor took %s of the CPU time (steal), other programs "+
		"used %s", units.Percent(l.Host.StealShare),
		units.Percent(l.Host.OtherCPUShare)))
	return v
}

// add adds a fact if it has a value.
func (v *factsView) add(name, value string) {
	if strings.Trim(value, " ,") != "" {
		v.Facts = append(v.Facts, fact{name, value})
	}
}

func provenanceFacts(r *record.Record) []fact {
	p := r.Provenance
	v := factsView{}
	t := r.Target
	v.add("target", strings.Join(notEmpty(t.Language, t.Framework+" "+t.Version, t.Runtime, t.Mode,
		"variant "+cmp.Or(t.Variant, "none")), ", "))
	if r.Start.ReadyNs > 0 {
		v.add("start", fmt.Sprintf("the service listened after %s, was ready after %s, and sent "+
			"its first response in %s",
			units.Duration(float64(r.Start.ListenNs)), units.Duration(float64(r.Start.ReadyNs)),
			units.Duration(float64(r.Start.FirstResponseNs))))
	}
	if r.Warmup.DurationNs > 0 {
		v.add("warm-up", warmupText(r.Warmup))
	}
	v.add("limits in force", strings.Join(wording.Limits(r.Limits.InForce), ", "))
	v.add("limits missing", strings.Join(wording.Limits(r.Limits.Missing), ", "))
	v.add("cores", fmt.Sprintf("service %v, load %v", r.Limits.ServiceCores, r.Limits.LoadCores))
	if len(r.Limits.TelemetryCores) > 0 {
		v.add("home's cores", fmt.Sprint(r.Limits.TelemetryCores))
	}
	if len(r.Limits.BackingCores) > 0 {
		v.add("backing processes' cores", fmt.Sprint(r.Limits.BackingCores))
	}
	v.add("artifact", strings.TrimSpace(r.Artifact.SHA256+" "+
		units.Bytes(float64(r.Artifact.SizeBytes))))
	v.add("service command", strings.Join(p.ServiceArgs, " "))
	commit := p.Commit
	if p.Dirty {
		commit += ", with uncommitted changes"
	}
	v.add("commit", commit)
	v.add("seed", fmt.Sprint(p.Seed))
	v.add("suite, plan", strings.Join(notEmpty(p.SuiteHash, p.PlanHash), ", "))
	memory := "memory unknown"
	if p.MemoryBytes > 0 {
		memory = units.Bytes(float64(p.MemoryBytes))
	}
	v.add("machine", fmt.Sprintf("%s, %d cores, %s, %s %s, governor %s, cgroup %s%s", p.CPUModel,
		p.Cores, memory, p.OS, p.Kernel, p.Governor, p.Cgroup,
		map[bool]string{true: ", virtual"}[p.Hypervisor]+
			map[bool]string{true: ", idle cores poll"}[p.Idle == record.IdlePolls]))
	v.add("tools", toolsText(p))
	return v.Facts
}

func warmupText(w record.Warmup) string {
	elapsed := time.Duration(w.DurationNs).Round(100 * time.Millisecond)
	if !w.Steady {
		return fmt.Sprintf("the service was never steady in %v, %s requests",
			elapsed, units.Count(w.Requests))
	}
	switch {
	case w.Kind == stats.Unsteady:
		return fmt.Sprintf("the service looked steady after %v, but was not steady in the window",
			elapsed)
	case w.Kind == stats.Slowed:
		return fmt.Sprintf("the service got slower; the warm-up took %v, %s requests",
			elapsed, units.Count(w.Requests))
	}
	instant := time.Duration(w.SteadyAtNs).Round(100 * time.Millisecond)
	return fmt.Sprintf("the service was steady after %v; the warm-up took %v, %s requests",
		instant, elapsed,
		units.Count(w.Requests))
}

func toolsText(p record.Provenance) string {
	words := []string{"prony " + p.Prony}
	for name, version := range p.Tools {
		words = append(words, name+": "+version)
	}
	slices.Sort(words[1:])
	return strings.Join(words, "; ")
}

func notEmpty(words ...string) []string {
	return slices.DeleteFunc(words, func(w string) bool { return strings.TrimSpace(w) == "" })
}

// searchText describes a search's result and its number of steps; the other facts are those of the
// deciding step.
func searchText(s *record.Search) string {
	ended := fmt.Sprintf("%d steps with open loads in %v", len(s.Steps),
		time.Duration(s.ElapsedNs).Round(time.Second))
	switch {
	case s.Reason == "":
		return fmt.Sprintf("%s/s [%s – %s] at %s, in %s", units.Rate(s.RatePerS),
			units.Rate(s.LoPerS),
			units.Rate(s.HiPerS), s.SLO, ended)
	case s.MetPerS > 0:
		return fmt.Sprintf("the capacity is at least %s/s at %s, found in %s: %s",
			units.Rate(s.MetPerS), s.SLO, ended,
			s.Reason)
	}
	return fmt.Sprintf("no rate met %s, found in %s: %s", s.SLO, ended, s.Reason)
}
