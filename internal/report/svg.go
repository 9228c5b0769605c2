package report

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/format"
	"prony.example/internal/base/units"
)

//go:embed picture.gosvg
var pictureText string

var pictureTemplate = template.Must(template.New("picture").Parse(pictureText))

// Sizes of a picture, in pixels.
const (
	pictureWidth = 860
	pictureLeft  = 190 // start of the bars
	pictureRight = 640 // end of their axis
	// pictureLetter is the width of a column of letters, and pictureGap the room around a name.
	pictureLetter = 8
	pictureGap    = 14
	pictureTop    = 72 // height of the titles
	pictureRow    = 34
	pictureAxis   = 34 // height of the axis
)

type picture struct {
	Width, Height, FromX, ToX int
	Title                     string
	Parts                     []picturePart
}

// picturePart has a bar for each target of a table.
type picturePart struct {
	Title, Subtitle string
	Y               int // its upper edge
	Top, Bottom     int // of its bars
	Bars            []pictureBar
	Ticks           []pictureTick
	Mark            float64 // position of ratio 1; 0: not ratios
}

type pictureTick struct {
	X    float64
	Text string
}

type pictureBar struct {
	Name, Text string
	Y          int // of its middle
	Known      bool
	To         float64 // end of the bar, if the value is known
	Lo, Hi     float64 // positions of the interval's ends; equal: none
}

// Width returns the length of the bar that begins at a position.
func (b pictureBar) Width(from int) float64 { return max(b.To-float64(from), 0) }

// SVG draws how targets compare: the first ratios of each comparison, with their intervals, or the
// first values if there are no ratios. It has colors for light and dark pages. It fails if no value
// is known.
func SVG(w io.Writer, s table.Sheet) error {
	more := 0 // room for long names
	for _, tab := range s.Tables {
		for _, row := range tab.Rows {
			name := pictureLetter*format.Columns(row.Name) + pictureGap
			more = max(more, name-pictureLeft)
		}
	}
	p := picture{Width: pictureWidth + more, FromX: pictureLeft + more, ToX: pictureRight + more}
	for _, tab := range s.Tables {
		if tab.Kind != "" { // not how targets compare
			continue
		}
		part, ok := drawTable(tab, float64(more))
		if !ok {
			continue
		}
		if part.Title == "" {
			part.Title = s.Head.String()
		}
		part.Y = p.Height
		p.Height += part.Bottom + pictureAxis
		p.Parts = append(p.Parts, part)
	}
	if len(p.Parts) == 0 {
		return errors.New("draw a picture: the values of all targets are unknown")
	}
	p.Title = p.Parts[0].Subtitle
	return pictureTemplate.Execute(w, p)
}

// drawTable draws a column of a table, with more room for names.
func drawTable(tab table.Table, more float64) (part picturePart, ok bool) {
	name := slices.IndexFunc(tab.Columns, func(c table.Column) bool {
		return c.Role == table.RoleName
	})
	value := drawnColumn(tab)
	if name < 0 || value < 0 {
		return part, false
	}
	column := tab.Columns[value]
	part = picturePart{Title: tab.Title(), Subtitle: drawnTitle(tab, value), Top: pictureTop}
	most := 0.0
	for _, row := range tab.Rows {
		if c := cellAt(row, value); c.State == table.Known {
			most = max(most, c.Value, endOf(c))
		}
	}
	axis := ruler{0, cmp.Or(most, 1), false}
	place := func(v float64) float64 {
		return more + pictureLeft + (pictureRight-pictureLeft)*min(max(v/axis.hi, 0), 1)
	}
	print := onAxis(units.Printer(column.Unit))
	if column.Role == table.RoleRatio {
		part.Mark, print = place(1), func(v float64) string { return fmt.Sprintf("%.3g", v) }
	}
	for i, row := range tab.Rows {
		c := cellAt(row, value)
		bar := pictureBar{Name: cellAt(row, name).Text(), Text: c.Text(),
			Y: part.Top + i*pictureRow + pictureRow/2, Known: c.State == table.Known}
		if bar.Known {
			bar.To = place(c.Value)
			if c.Interval.State == table.Known {
				bar.Lo, bar.Hi = place(c.Interval.Lo), place(c.Interval.Hi)
			}
		}
		part.Bars = append(part.Bars, bar)
	}
	part.Bottom = part.Top + len(tab.Rows)*pictureRow
	for _, v := range axis.ticks() {
		part.Ticks = append(part.Ticks, pictureTick{place(v), print(v)})
	}
	return part, true
}

// drawnColumn returns the index of the first column of ratios, or of numbers, in which a row has a
// value; -1 without one.
func drawnColumn(tab table.Table) int {
	for _, role := range []table.Role{table.RoleRatio, table.RoleNumber} {
		for i, c := range tab.Columns {
			known := func(row table.Row) bool { return cellAt(row, i).State == table.Known }
			measured := func(row table.Row) bool { // a baseline has no ratio of its own
				return known(row) && (role == table.RoleNumber || cellAt(row, i).N > 0)
			}
			if c.Role == role && slices.ContainsFunc(tab.Rows, measured) {
				return i
			}
		}
	}
	return -1
}

// drawnTitle names the metric of a column of ratios, and the target that they refer to.
func drawnTitle(tab table.Table, i int) string {
	c := tab.Columns[i]
	if c.Role != table.RoleRatio {
		return c.FullHeading()
	}
	label := c.Label
	for j := i - 1; j >= 0 && label == ""; j-- {
		if tab.Columns[j].Role == table.RoleNumber {
			label = tab.Columns[j].Label
		}
	}
	return c.Group.Short() + " " + label + " relative to " + c.Versus.String()
}

// cellAt returns a cell of a row, or an absent one if the row has a text instead.
func cellAt(row table.Row, i int) table.Cell {
	if i >= len(row.Cells) {
		return table.Cell{Value: math.NaN()}
	}
	return row.Cells[i]
}

// endOf returns the upper end of a cell's interval; 0 without one.
func endOf(c table.Cell) float64 {
	if c.Interval.State != table.Known {
		return 0
	}
	return c.Interval.Hi
}
