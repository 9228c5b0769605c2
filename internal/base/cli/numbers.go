package cli

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"prony.example/internal/base/lazyregexp"
)

// Exact makes the flags of a command and of all commands below it accept only numbers that mean
// what they seem to: package pflag reads 010 as 8, 0x10 as 16, 1_0 as 10, and NaN as a number. Its
// errors for times and lists do not say what to write.
func Exact(c *cobra.Command) {
	for _, fs := range []*pflag.FlagSet{c.Flags(), c.PersistentFlags()} {
		fs.VisitAll(func(f *pflag.Flag) {
			if _, is := f.Value.(number); is {
				return
			}
			switch f.Value.Type() {
			case "int", "int64":
				f.Value = number{f.Value, wholeForm, errWhole}
			case "uint", "uint64":
				f.Value = number{f.Value, unsignedForm, errWhole}
			case "float64":
				f.Value = number{f.Value, decimalForm, errDecimal}
			case "intSlice":
				f.Value = number{f.Value, listForm, errList}
			case "duration":
				f.Value = number{f.Value, timeForm, errTime}
			}
		})
	}
	for _, below := range c.Commands() {
		Exact(below)
	}
}

var (
	wholeForm    = lazyregexp.New(`^[-+]?(0|[1-9][0-9]*)$`)
	unsignedForm = lazyregexp.New(`^(0|[1-9][0-9]*)$`)
	decimalForm  = lazyregexp.New(`^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$`)
	listForm     = lazyregexp.New(`^(0|[1-9][0-9]*)(,(0|[1-9][0-9]*))*$`)
	timeForm     = lazyregexp.New(`^[-+]?(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`)

	errWhole = errors.New("must be a whole number in decimal digits, such as 3, without leading " +
		"zeros, fraction or exponent")
	errDecimal = errors.New("must be a decimal number, such as 2 or 0.5")
	errList    = errors.New("must be whole numbers with commas between them, such as 2,3")
	errTime    = errors.New("must be a time with its unit, such as 10s, 500ms or 1m30s")
	errBeyond  = errors.New("is too large")
)

// number is a flag's value that accepts texts of one form only.
type number struct {
	pflag.Value
	form *lazyregexp.Pattern
	why  error
}

// Set implements pflag.Value.
func (n number) Set(text string) error {
	if !n.form.MatchString(text) {
		return n.why
	}
	if n.Value.Set(text) != nil { // it has the right form
		return errBeyond
	}
	return nil
}
