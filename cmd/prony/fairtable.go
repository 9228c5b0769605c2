//go:build linux && !portable

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"prony.example/internal/base/format"
	"prony.example/internal/service"
)

// contractHeaders are the header fields that the contract requires in a response with a body. All
// others are the framework's.
var contractHeaders = []string{"Content-Length", "Content-Type"}

// fairRow describes a target's responses by the texts of the table, so that rows of a page and new
// rows can be compared.
type fairRow struct {
	target string
	sizes  []string // per headline, such as "118+23"; empty: not of its contracts
	kept   string   // yes, or the requests after which the connection was closed
	beyond []string // header fields; with paths if some responses lack one: "Etag (/data)"
}

// short returns a request without method and query.
func short(request string) string {
	_, path, _ := strings.Cut(request, " ")
	path, _, _ = strings.Cut(path, "?")
	return path
}

func newFairRow(target string, heads []service.Head) fairRow {
	r := fairRow{target: target, sizes: make([]string, len(service.Headlines()))}
	carriers := map[string][]string{}
	var names, closed []string
	for _, h := range heads {
		r.sizes[slices.Index(service.Headlines(), h.Request)] = fmt.Sprintf("%d+%d",
			h.HeadBytes, h.BodyBytes)
		if !h.Kept {
			closed = append(closed, short(h.Request))
		}
		for _, name := range h.Headers {
			if !slices.Contains(contractHeaders, name) {
				names = append(names, name)
				carriers[name] = append(carriers[name], short(h.Request))
			}
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if len(carriers[name]) < len(heads) {
			name += " (" + strings.Join(carriers[name], " ") + ")"
		}
		r.beyond = append(r.beyond, name)
	}
	r.kept = "yes"
	if len(closed) > 0 {
		r.kept = "closed after " + strings.Join(closed, " ")
	}
	return r
}

// fairTable returns the header and a line per row, with a column for each headline that any row
// has.
func fairTable(rows []fairRow) [][]string {
	var columns []int
	header := []string{"target"}
	for i, request := range service.Headlines() {
		if slices.ContainsFunc(rows, func(r fairRow) bool { return r.sizes[i] != "" }) {
			columns, header = append(columns, i), append(header, short(request))
		}
	}
	header = append(header, "kept", "headers beyond "+strings.Join(contractHeaders, ", "))
	table := [][]string{header}
	for _, r := range rows {
		cells := []string{r.target}
		for _, i := range columns {
			cells = append(cells, cmp.Or(r.sizes[i], "-"))
		}
		table = append(table, append(cells, r.kept, cmp.Or(strings.Join(r.beyond, ", "), "none")))
	}
	return table
}

func printFairness(out io.Writer, rows []fairRow) error {
	fmt.Fprintln(out, "bytes of headers+body in the response to each measured request")
	table := fairTable(rows)
	table[0][0] = "TARGET"
	_, err := fmt.Fprintf(out, "%s\n%s\n", format.Grid("", table, format.Left),
		strings.Join(fairDifferences(rows), "\n"))
	return err
}

// fairnessMarkdown returns the table of a page. Targets of one service with equal responses share a
// row, such as "go-x/a,b".
func fairnessMarkdown(rows []fairRow) string {
	var b strings.Builder
	rows = sharedRows(rows)
	for i, cells := range fairTable(rows) {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
		if i == 0 {
			fmt.Fprintf(&b, "|%s\n", strings.Repeat("---|", len(cells)))
		}
	}
	b.WriteString("\n")
	for _, line := range fairDifferences(rows) {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	return b.String()
}

// sharedRows joins the rows of targets of one service that are otherwise equal.
func sharedRows(rows []fairRow) []fairRow {
	var out []fairRow
	for _, r := range rows {
		folder, name, several := strings.Cut(r.target, "/")
		same := func(o fairRow) bool {
			return strings.HasPrefix(o.target, folder+"/") && slices.Equal(o.sizes, r.sizes) &&
				o.kept == r.kept && slices.Equal(o.beyond, r.beyond)
		}
		if i := slices.IndexFunc(out, same); several && i >= 0 {
			out[i].target += "," + name
			continue
		}
		out = append(out, r)
	}
	return out
}

// separateRows is the reverse of sharedRows.
func separateRows(r fairRow) []fairRow {
	folder, names, several := strings.Cut(r.target, "/")
	if !several {
		return []fairRow{r}
	}
	var out []fairRow
	for name := range strings.SplitSeq(names, ",") {
		r.target = folder + "/" + name
		out = append(out, r)
	}
	return out
}

// readFairness reads the rows of a page's section, and ignores all other lines.
func readFairness(page string) []fairRow {
	_, text, _ := strings.Cut(page, "<!-- prony:begin "+fairnessSection+" -->")
	text, _, _ = strings.Cut(text, "<!-- prony:end "+fairnessSection+" -->")
	var header []string
	var rows []fairRow
	for line := range strings.Lines(text) {
		inside, ok := strings.CutPrefix(strings.TrimSpace(line), "| ")
		if !ok {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(inside, " |"), " | ")
		if header == nil {
			header = cells
			continue
		}
		if len(cells) != len(header) {
			continue
		}
		rows = append(rows, separateRows(readFairRow(header, cells))...)
	}
	return rows
}

func readFairRow(header, cells []string) fairRow {
	r := fairRow{target: cells[0], sizes: make([]string, len(service.Headlines()))}
	for i, request := range service.Headlines() {
		at := slices.Index(header, short(request))
		if at > 0 && cells[at] != "-" {
			r.sizes[i] = cells[at]
		}
	}
	r.kept = cells[len(cells)-2]
	if beyond := cells[len(cells)-1]; beyond != "none" {
		r.beyond = strings.Split(beyond, ", ")
	}
	return r
}

// fairDifferences describes the differences among the rows.
func fairDifferences(rows []fairRow) []string {
	var out []string
	for i, request := range service.Headlines() {
		out = append(out, sizeDifferences(rows, i, short(request))...)
	}
	closing := func(r fairRow) bool { return r.kept != "yes" }
	if slices.ContainsFunc(rows, closing) {
		out = append(out, "the connection is closed by "+among(rows, closing))
	}
	var names []string
	for _, r := range rows {
		names = append(names, r.beyond...)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		with := func(r fairRow) bool { return slices.Contains(r.beyond, name) }
		if who := among(rows, with); who != "all" {
			out = append(out, "header field "+name+" is sent by "+who)
		}
	}
	if len(out) == 0 {
		out = []string{"nothing differs"}
	}
	return out
}

// sizeDifferences compares the heads and bodies of one request.
func sizeDifferences(rows []fairRow, i int, path string) (out []string) {
	var small, large fairRow
	least, most := 0, 0
	bodies := map[int][]string{}
	for _, r := range rows {
		var head, body int
		if _, err := fmt.Sscanf(r.sizes[i], "%d+%d", &head, &body); err != nil {
			continue // not of its contracts
		}
		if least == 0 || head < least {
			least, small = head, r
		}
		if head > most {
			most, large = head, r
		}
		bodies[body] = append(bodies[body], r.target)
	}
	if least != most {
		out = append(out, fmt.Sprintf("header size of %s: from %d bytes (%s) to %d bytes "+
			"(%s)", path, least,
			small.target, most, large.target))
	}
	if len(bodies) > 1 {
		out = append(out, fmt.Sprintf("body size of %s in bytes, with targets: %v", path, bodies))
	}
	return out
}

// among lists the rows for which a condition is true, or the fewer ones for which it is not.
func among(rows []fairRow, is func(fairRow) bool) string {
	var with, without []string
	for _, r := range rows {
		if is(r) {
			with = append(with, r.target)
		} else {
			without = append(without, r.target)
		}
	}
	switch {
	case len(without) == 0:
		return "all"
	case len(without) < len(with):
		return "all but " + strings.Join(without, ", ")
	}
	return strings.Join(with, ", ")
}
