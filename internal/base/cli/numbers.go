package cli

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"prony.example/internal/base/lazyregexp"
)

// Exact makes the flags of a command and of all commands below it accept only numbers that mean
// what they seem to: package pflag reads 010 as 8, 0x10 as 16, 1_0 as 10, and NaN as a number.
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

	errWhole = errors.New("must be a whole number in decimal digits, such as 3, without leading " +
		"zeros, fraction or exponent")
	errDecimal = errors.New("must be a decimal number, such as 2 or 0.5")
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
