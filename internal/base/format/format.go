package format

import (
	"io"
	"slices"
	"strings"
)

// Format is an output format and the suffixes of its files, the default suffix first.
type Format struct {
	Name    string
	Endings []string
}

// Formats lists all formats; the Forms of a type say which of them apply to it.
var Formats = []Format{
	{"text", []string{"txt"}},
	{"markdown", []string{"md", "markdown"}},
	{"csv", []string{"csv"}},
	{"json", []string{"json"}},
	{"html", []string{"html", "htm"}},
	{"svg", []string{"svg"}},
	{"parquet", []string{"parquet"}},
}

// Ending returns the default suffix of a format's files, without the dot. It panics if the format
// is unknown.
func Ending(format string) string { return Formats[index(format)].Endings[0] }

// FormatOf returns the format of a file suffix, with or without a dot; "" if the suffix is unknown.
func FormatOf(ending string) string {
	for _, f := range Formats {
		if slices.Contains(f.Endings, strings.ToLower(strings.TrimPrefix(ending, "."))) {
			return f.Name
		}
	}
	return ""
}

func index(format string) int {
	i := slices.IndexFunc(Formats, func(f Format) bool { return f.Name == format })
	if i < 0 {
		panic("print: there is no format " + format + ": add it to Formats")
	}
	return i
}

// Form writes a T in one format.
type Form[T any] struct {
	Format string
	Write  func(io.Writer, T) error
}

// Forms lists the formats of a T, the default first.
type Forms[T any] []Form[T]

// Names returns the names of the formats.
func (f Forms[T]) Names() (out []string) {
	for _, form := range f {
		out = append(out, Formats[index(form.Format)].Name)
	}
	return out
}

// Write writes v in a format. It panics if the format is not in f.
func (f Forms[T]) Write(w io.Writer, format string, v T) error {
	i := slices.IndexFunc(f, func(form Form[T]) bool { return form.Format == format })
	if i < 0 {
		panic("print: nothing writes this as " + format)
	}
	return f[i].Write(w, v)
}
