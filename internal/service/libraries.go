package service

import (
	"debug/elf"
	"path/filepath"
	"slices"
	"strings"

	"prony.example/internal/base/files"
)

// origin is how a run path begins that is relative to its executable (ld.so(8)).
const origin = "$ORIGIN/"

// ownLibraries returns the command that copies shared libraries beside a native image, into the
// folder of its run path that is relative to it, if the image was linked with libraries of its
// builder. The service's user may not be allowed to read the builder's folder, and the builder may
// be updated. It returns nil for all others, such as those of vendors, which contain the libraries.
func (b *Built) ownLibraries(artifact string) []string {
	native, ok := b.Tools["native-image"]
	program, err := filepath.EvalSymlinks(native.Path)
	if !ok || err != nil {
		return nil
	}
	f, err := files.Plain(artifact)
	if err != nil {
		return nil // digest reports it
	}
	defer f.Close()
	image, err := elf.NewFile(f)
	if err != nil {
		return nil // on macOS, or not an executable
	}
	needed, _ := image.ImportedLibraries() // a damaged table names none
	target, libraries := "", []string(nil)
	for _, folder := range runPath(image) {
		relative, ok := strings.CutPrefix(folder, origin)
		if ok && filepath.IsLocal(relative) && target == "" {
			target = filepath.Join(filepath.Dir(artifact), relative)
		}
		if below, err := filepath.Rel(homeOf(program), folder); err == nil &&
			filepath.IsLocal(below) {
			libraries, _ = filepath.Glob(filepath.Join(folder, "*.so*")) // likewise
		}
	}
	if target == "" || !slices.ContainsFunc(libraries, func(path string) bool {
		return slices.Contains(needed, filepath.Base(path))
	}) {
		return nil
	}
	// All of them: they load each other while the service runs.
	return append([]string{"install", "-D", "-m", "755", "-t", target}, libraries...)
}

// runPath are the folders in which an executable looks for its shared libraries first.
func runPath(image *elf.File) (folders []string) {
	for _, tag := range []elf.DynTag{elf.DT_RUNPATH, elf.DT_RPATH} {
		paths, _ := image.DynString(tag) // a damaged table names none
		for _, path := range paths {
			folders = append(folders, filepath.SplitList(path)...)
		}
	}
	return folders
}
