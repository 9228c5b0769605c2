package cli

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"prony.example/internal/base/format"
)

// Choice is the value of a flag that takes one of several words.
type Choice struct {
	to    *string
	words []string
	also  func(string) string // returns the word for a former name; nil: no former names
}

// Set implements pflag.Value. It returns an error for unknown words.
func (v *Choice) Set(word string) error {
	if v.also != nil {
		word = cmp.Or(v.also(word), word)
	}
	if err := check(v.words, word); err != nil {
		return err
	}
	*v.to = word
	return nil
}

func (v *Choice) String() string { return *v.to }

// Type implements pflag.Value; help texts and manuals print it.
func (*Choice) Type() string { return "string" }

// Choices is the value of a flag that takes several of a list of words: comma-separated, or in
// repeated flags.
type Choices struct {
	to    *[]string
	words []string
	isSet bool
}

// Set implements pflag.Value. The first call replaces the default.
func (v *Choices) Set(list string) error {
	words := strings.Split(list, ",")
	if err := check(v.words, words...); err != nil {
		return err
	}
	if !v.isSet {
		*v.to, v.isSet = nil, true
	}
	*v.to = append(*v.to, words...)
	return nil
}

func (v *Choices) String() string { return strings.Join(*v.to, ",") }

// Type implements pflag.Value; help texts and manuals print it.
func (*Choices) Type() string { return "strings" }

// noChoice reports a word that a flag does not accept.
type noChoice struct{ words []string }

func (e *noChoice) Error() string { return "there are " + strings.Join(e.words, ", ") }

func check(choices []string, words ...string) error {
	for _, w := range words {
		if !slices.Contains(choices, w) {
			return &noChoice{choices}
		}
	}
	return nil
}

// OneOf declares a flag that takes one of several words. A shorthand may follow the flag's name, as
// in "output,o". The variable's value is the default. Help lists the words after the usage.
func OneOf(c *cobra.Command, to *string, name, usage string, words ...string) {
	declare(c, &Choice{to: to, words: words}, name, usage, words)
}

// FormerWord makes a flag that OneOf declared also accept the former name of a word.
func FormerWord(c *cobra.Command, flag, former, word string) {
	c.Flags().Lookup(flag).Value.(*Choice).also = func(text string) string {
		if text == former {
			return word
		}
		return ""
	}
}

// SomeOf declares a flag that takes several of a list of words.
func SomeOf(c *cobra.Command, to *[]string, name, usage string, words ...string) {
	declare(c, &Choices{to: to, words: words}, name, usage, words)
}

func declare(c *cobra.Command, v pflag.Value, name, usage string, words []string) {
	name, short, _ := strings.Cut(name, ",")
	list := strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
	if usage != "" {
		list = usage + ": " + list
	}
	c.Flags().VarP(v, name, short, list)
	offer := cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	if err := c.RegisterFlagCompletionFunc(name, offer); err != nil {
		panic("cli: a flag is completed twice: " + err.Error())
	}
}

// joined is the value of a flag that takes a list with commas, in one flag or in several.
type joined struct {
	to    *string
	isSet bool
}

// Set implements pflag.Value.
func (v *joined) Set(list string) error {
	if v.isSet {
		list = *v.to + "," + list
	}
	*v.to, v.isSet = list, true
	return nil
}

func (v *joined) String() string { return *v.to }

// Type implements pflag.Value; help texts and manuals print it.
func (*joined) Type() string { return "string" }

// Joined declares a flag that takes a list with commas; the lists of repeated flags are joined.
func Joined(c *cobra.Command, to *string, name, usage string) {
	c.Flags().Var(&joined{to: to}, name, usage)
}

// FormerFlags makes flags also available by their former names, the keys of names. Help does not
// list them.
func FormerFlags(root *cobra.Command, names map[string]string) {
	root.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(cmp.Or(names[name], name))
	})
}

// FlagError makes a usage error from an error of flag parsing; it is for
// cobra.Command.SetFlagErrorFunc.
func FlagError(c *cobra.Command, err error) error {
	var wrong *pflag.InvalidValueError
	var unknown *noChoice
	if errors.As(err, &wrong) && errors.As(err, &unknown) {
		return Usagef("--%s %q: %w; see %s --help", wrong.GetFlag().Name, wrong.GetValue(), unknown,
			c.CommandPath())
	}
	return Usagef("%w; see %s --help", err, c.CommandPath())
}

// Output declares --format and --output of a verb that writes one of several formats, to a file or
// to standard output. The first format is the default.
func Output(c *cobra.Command, formatName, file *string, formats ...string) {
	*formatName = formats[0]
	v := &Choice{to: formatName, words: formats, also: format.FormatOf}
	declare(c, v, "format", "", formats)
	c.Flags().StringVarP(file, "output", "o", "",
		"file to write, in the format of its suffix (default: standard output)")
}

// notEmpty lists flags that choose, compare or judge, and what to write instead of an empty value.
// An empty value, for example from an unset variable of a script, would silently choose everything,
// or compare or judge something else.
var notEmpty = []struct{ name, want string }{
	{"git", "give a revision, such as main or HEAD~1"},
	{"url", "give the URL of a service, such as http://127.0.0.1:8081"},
	{"image", "give an image of the Docker engine, such as app:1.2"},
	{"build", "give the command that builds a revision"},
	{"run", "give the command that starts the service"},
	{"get", "give a path, such as /items"},
	{"request", "give a method and a path, such as 'POST /items'"},
	{"against", "give the folder of another checkout"},
	{"targets", ""}, {"target", ""}, {"scenarios", ""}, {"loads", ""}, {"load", ""}, {"trial", ""},
	{"metric", "give a metric, such as throughput or p99"},
	{"max-regression", "give a share, such as 5% or p99=10%"},
	{"control", "give the name of a row that both runs have"},
	{"baseline", "give the name of a row of the run"},
	{"last-good", "give the file that stores the last good run"},
	{"diff", "give the name of a target, a run or a trial"},
	{"resume", "give the folder of the run"},
	{"from", "name a file"},
	{"agent", "give the name of an agent that prony agents lists"},
	{"slo", "write objectives, such as 'p99<20ms'"},
	{"threshold", "write objectives, such as 'p99<20ms'"},
	{"rate", ""}, {"users", ""}, {"trace", ""}, {"traces", ""}, {"scenario", ""}, {"detect", ""},
	{"concurrency", ""}, {"stress", ""}, {"network", ""}, {"think", ""}, {"warmup", ""},
	{"connect-to", "give HOST:PORT, such as 127.0.0.1:8443"},
	{"unix", "give the path of a socket"}, {"listen", "give an address"},
	{"compose", "give a service of a Compose file, such as web"},
	{"ca", "name a file"}, {"cert", "name a file"}, {"cert-key", "name a file"},
	{"identity", "name a folder"}, {"otlp", "give a URL, such as http://127.0.0.1:4318"},
	{"save-trace", "name a file"},
}

// NotEmpty returns a usage error if one of these flags is given with an empty value, or with an
// empty member of a list.
func NotEmpty(fs *pflag.FlagSet) error {
	for _, flag := range notEmpty {
		f := fs.Lookup(flag.name)
		if f == nil || !f.Changed {
			continue
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		empty := func(value string) bool { return strings.TrimSpace(value) == "" }
		if len(values) == 0 || slices.ContainsFunc(values, empty) {
			return Usagef("--%s \"\": the value is empty, perhaps because a variable of your "+
				"script is not set; %s, or leave the flag out", flag.name,
				cmp.Or(flag.want, "write a value"))
		}
	}
	return nil
}

// unwritten lists suffixes of formats that no verb writes.
var unwritten = strings.Fields(`pdf xls xlsx ods doc docx odt ppt pptx xml yaml yml toml tsv ndjson
	jsonl tex rst adoc png jpg jpeg gif webp zip gz tgz zst db sqlite hlog pb`)

// FollowSuffix sets --format by the suffix of --output, for all verbs that have both, unless
// --format is given. An unknown suffix leaves the default. The suffix of a format that the verb
// cannot write, or that no verb writes, is an error, because otherwise only a later program would
// find out.
func FollowSuffix(fs *pflag.FlagSet) error {
	formatName, out := fs.Lookup("format"), fs.Lookup("output")
	if formatName == nil || out == nil || formatName.Changed {
		return nil
	}
	suffix := strings.ToLower(filepath.Ext(out.Value.String()))
	want := format.FormatOf(suffix)
	if want == "" && !slices.Contains(unwritten, strings.TrimPrefix(suffix, ".")) {
		return nil
	}
	if err := formatName.Value.Set(want); err != nil {
		return Usagef("--output %s: this command has no format for %s; %w, or choose a format "+
			"with --format", out.Value, suffix, err)
	}
	return nil
}
