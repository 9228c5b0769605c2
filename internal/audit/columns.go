package audit

import (
	"fmt"
	"slices"
	"strings"
)

// Columns are what a caller says of heads that are not understood. They remember which heads there
// were, so that Unknown can tell a name that fits none. A nil one says nothing.
type Columns struct {
	names []string        // as they were given
	of    map[string]head // by the name in small letters
	met   map[string]bool // likewise
	heads []string        // of all that was read, each once
}

// ParseColumns reads NAME=MEANING, where a meaning may carry a unit: "Lat=p99:ms".
func ParseColumns(args []string) (*Columns, error) {
	out := &Columns{of: map[string]head{}, met: map[string]bool{}}
	for _, a := range args {
		name, meaning, ok := strings.Cut(a, "=")
		q, unit, _ := strings.Cut(strings.TrimSpace(meaning), ":")
		_, known := kinds[Quantity(q)]
		if !ok || !known && q != "name" {
			return nil, fmt.Errorf("read --column %q: want NAME=MEANING or NAME=MEANING:UNIT; "+
				"meanings are %s", a, strings.Join(Meanings(), ", "))
		}
		name = strings.TrimSpace(name)
		out.names = append(out.names, name)
		out.of[strings.ToLower(name)] = head{Quantity(q), unit}
	}
	return out, nil
}

// Meanings are the quantities that a column may be of.
func Meanings() (out []string) {
	for q := range kinds {
		if q != rateWithSpread && q != InFlight {
			out = append(out, string(q))
		}
	}
	slices.Sort(out)
	return append(out, "name")
}

// headsMost bounds the list of heads: nobody reads more.
const headsMost = 50

// meet notes heads that there are.
func (c *Columns) meet(heads ...string) {
	if c == nil {
		return
	}
	for _, h := range heads {
		if h = plain(h); h != "" && len(c.heads) <= headsMost && !slices.Contains(c.heads, h) {
			c.heads = append(c.heads, h)
		}
	}
}

// Unknown is the error of names that no column has, of all files that have been read with these
// Columns: a word that is misspelt would explain nothing, and nobody would know.
func (c *Columns) Unknown() error {
	var gone []string
	for _, name := range c.names {
		if !c.met[strings.ToLower(name)] {
			gone = append(gone, fmt.Sprintf("%q", name))
		}
	}
	if gone == nil {
		return nil
	}
	there := "what was read has no columns"
	if len(c.heads) > 0 {
		there = "there are " + strings.Join(c.heads[:min(headsMost, len(c.heads))], ", ")
	}
	if len(c.heads) > headsMost {
		there += " and more"
	}
	return fmt.Errorf("--column: there is no column %s; %s", strings.Join(gone, " or "), there)
}

func (c *Columns) given(text string) (head, bool) {
	if c == nil {
		return head{}, false
	}
	low := strings.ToLower(plain(text))
	h, ok := c.of[low]
	if ok {
		c.met[low] = true
	}
	return h, ok
}

// longestHead is in bytes; what is longer is a text, and seconds of work for patterns.
const longestHead = 4 << 10

func (c *Columns) headOf(text, sample string) (head, bool) {
	if len(text) > longestHead || len(sample) > longestHead {
		return head{}, false
	}
	if h, ok := c.given(text); ok {
		return h, true
	}
	if h, ok := headOf(text); ok {
		return h, true
	}
	if against.MatchString(plain(text)) && ratioCell.MatchString(plain(sample)) {
		return head{Relative, ""}, true
	}
	m := numberHead.FindStringSubmatch(plain(sample))
	if m == nil || m[4] == "" {
		return head{}, false
	}
	// "Avg" alone says nothing; beside "2.6ms" it does.
	h, ok := headOf(text + " (" + m[4] + ")")
	return head{h.quantity, ""}, ok
}
