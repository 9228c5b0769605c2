package main

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"prony.example/internal/base/files"
)

// billSuffix ends the name of the bill of materials beside a program.
const billSuffix = ".cdx.json"

// bill writes a program's bill of materials beside it: the modules that the linker has recorded in
// it, as CycloneDX 1.6 (https://cyclonedx.org/specification/overview).
func bill(program string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	sum, err := files.Digest(program)
	if err != nil {
		return err
	}
	module := func(kind cdx.ComponentType, path, version string) cdx.Component {
		url := "pkg:golang/" + path + "@" + version
		return cdx.Component{Type: kind, Name: path, Version: version, BOMRef: url, PackageURL: url}
	}
	main := module(cdx.ComponentTypeApplication, info.Main.Path, info.Main.Version)
	main.Name = filepath.Base(program)
	main.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}}
	parts := []cdx.Component{module(cdx.ComponentTypeLibrary, "std",
		strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		parts = append(parts, module(cdx.ComponentTypeLibrary, m.Path, m.Version))
	}
	var refs []string
	for _, p := range parts {
		refs = append(refs, p.BOMRef)
	}
	out := cdx.NewBOM()
	out.Metadata = &cdx.Metadata{Component: &main}
	out.Components = &parts
	out.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	return files.Write(program+billSuffix, func(w io.Writer) error {
		return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).
			EncodeVersion(out, cdx.SpecVersion1_6)
	})
}

// sumsName is the file of checksums, in the format of sha256sum -c.
const sumsName = "SHA256SUMS"

// checksums writes the checksums of all files.
func (r release) checksums() error {
	var lines strings.Builder
	err := filepath.WalkDir(r.dir, func(path string, f fs.DirEntry, err error) error {
		if err != nil || f.IsDir() {
			return err
		}
		sum, err := files.Digest(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(r.dir, path)
		fmt.Fprintf(&lines, "%s  %s\n", sum, filepath.ToSlash(name))
		return err
	})
	if err != nil {
		return err
	}
	return files.Put(filepath.Join(r.dir, sumsName), []byte(lines.String()))
}
