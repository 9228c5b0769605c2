package translate

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// parse reads the flags of a command line into the wish and returns the other arguments.
func (w *wish) parse(args []string) (urls []string, err error) {
	if w.tool.oneDash {
		urls, err = w.parseGo(args)
	} else {
		urls, err = w.parseGetopt(args)
	}
	if errors.Is(err, flag.ErrHelp) || errors.Is(err, pflag.ErrHelp) {
		return nil, errors.New("the command line prints help and runs no load")
	}
	return urls, err
}

// parseGetopt parses flags in getopt's style: -t2, -t 2, --threads 2, --threads=2.
func (w *wish) parseGetopt(args []string) ([]string, error) {
	set := pflag.NewFlagSet(w.tool.name, pflag.ContinueOnError)
	set.SetOutput(io.Discard)
	for i := range w.tool.flags {
		v := &value{w, &w.tool.flags[i]}
		long, letter := v.names()
		f := set.VarPF(v, long, letter, "")
		if v.IsBoolFlag() {
			f.NoOptDefVal = "true"
		}
	}
	set.VarP(&value{w, &statusFlag}, "status", "", "")
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	return set.Args(), nil
}

// parseGo parses flags in the style of Go's package flag: -t 2, -t=2.
func (w *wish) parseGo(args []string) ([]string, error) {
	set := flag.NewFlagSet(w.tool.name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	for i := range w.tool.flags {
		v := &value{w, &w.tool.flags[i]}
		name, _ := v.names()
		set.Var(v, name, "")
	}
	set.Var(&value{w, &statusFlag}, "status", "")
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	return set.Args(), nil
}

// value is a row of the table that implements the flag interfaces of both packages.
type value struct {
	wish *wish
	row  *row
}

// names returns the long name, or the letter if it has no long name, and the letter.
func (v *value) names() (long, letter string) {
	for word := range strings.FieldsSeq(strings.ReplaceAll(v.row.flag, ",", " ")) {
		name := strings.TrimLeft(word, "-")
		switch {
		case word == name: // the name of the value
		case len(name) == 1 && strings.Count(word, "-") == 1:
			letter = name
		default:
			long = name
		}
	}
	if long == "" {
		long = letter
	}
	return long, letter
}

// Set implements flag.Value.
func (v *value) Set(text string) error {
	if v.row.set != nil {
		if err := v.row.set(&v.wish.asked, text); err != nil {
			return err
		}
	}
	name, _, _ := strings.Cut(v.row.flag, " ")
	name = strings.TrimSuffix(name, ",")
	remark := strings.ReplaceAll(v.row.remark, "`", "")
	switch {
	case v.row.load == none:
		v.wish.note("%s: prony load has no such flag: %s", name, remark)
	case v.row.load != notNeeded && remark != "":
		v.wish.note("%s: %s", name, remark)
	}
	return nil
}

// String implements flag.Value.
func (v *value) String() string { return "" }

// Type implements pflag.Value.
func (v *value) Type() string { return "" }

// IsBoolFlag reports whether the flag has no value.
func (v *value) IsBoolFlag() bool {
	if v.row == nil { // package flag calls it on a zero value
		return false
	}
	words := strings.Fields(v.row.flag)
	return strings.HasPrefix(words[len(words)-1], "-")
}

// number parses a number with wrk's units of 1000, such as 10k.
func number(text string) (float64, error) {
	units := map[string]float64{"k": 1e3, "m": 1e6, "g": 1e9}
	digits, unit := text, 1.0
	if n := len(text); n > 0 && units[strings.ToLower(text[n-1:])] > 0 {
		digits, unit = text[:n-1], units[strings.ToLower(text[n-1:])]
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(f >= 0 && f*unit <= 1e15) {
		return 0, fmt.Errorf("the value must be a number such as 100 or 10k")
	}
	return f * unit, nil
}

// count parses an integer of at least 1.
func count(text string) (int, error) {
	f, err := number(text)
	if err != nil || f < 1 || f != float64(int(f)) {
		return 0, fmt.Errorf("the value must be a whole number of at least 1, such as 100 or 10k")
	}
	return int(f), nil
}

// span parses a duration such as 30s, or 30 for seconds.
func span(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		d, err = time.ParseDuration(text + "s")
	}
	if err != nil || d < 0 {
		return 0, fmt.Errorf("the value must be a time such as 30s")
	}
	return d, nil
}
