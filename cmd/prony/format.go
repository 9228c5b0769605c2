package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
)

// addOutput declares the two flags of a verb that writes one of several formats; formats lists
// them in words, text first.
func addOutput(fs *pflag.FlagSet, format, out *string, formats string) {
	fs.StringVar(format, "format", "text", formats)
	fs.StringVarP(out, "output", "o", "",
		"file to write, in the format of its suffix (default: standard output)")
}

// bySuffix are the formats that the end of a file's name asks for.
var bySuffix = map[string]string{
	".txt": "text", ".md": "markdown", ".markdown": "markdown", ".csv": "csv", ".json": "json",
	".html": "html", ".htm": "html", ".parquet": "parquet",
}

// formatOf sets --format by the suffix of --output, for all verbs that have both, where the format
// is not given. A suffix that means none of ours leaves the text. One that means a format that the
// verb lacks is refused: a page that is no page would be found out only later, by another program.
func formatOf(fs *pflag.FlagSet) error {
	format, out := fs.Lookup("format"), fs.Lookup("output")
	if format == nil || out == nil || format.Changed {
		return nil
	}
	suffix := strings.ToLower(filepath.Ext(out.Value.String()))
	wanted := bySuffix[suffix]
	if wanted == "" {
		return nil
	}
	if !strings.Contains(format.Usage, wanted) {
		return usageError{fmt.Errorf("--output %s: there is no format for %s here; there are %s, "+
			"and --format says which is meant", out.Value, suffix, format.Usage)}
	}
	return format.Value.Set(wanted)
}
