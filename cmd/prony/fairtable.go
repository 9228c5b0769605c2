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
	_, err := fmt.Fprintln(out, format.Grid("", table, format.Left))
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
