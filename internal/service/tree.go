package service

import (
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"prony/internal/file"
)

// leftOut are the names that builds by hand leave in a service's folder and git ignores: anywhere
// in it, or only at its top, where src/bin may be somebody's source.
var (
	leftOut      = []string{"node_modules", "target", "__pycache__"}
	leftOutAtTop = []string{"bin", "venv", ".venv"}
)

// ignored says whether a name in a service's folder is not source.
func ignored(name string) bool {
	top, _, _ := strings.Cut(name, "/")
	last := name[strings.LastIndexByte(name, '/')+1:]
	return slices.Contains(leftOutAtTop, top) || slices.Contains(leftOut, last)
}

func (s *Service) ignored(name string) bool {
	if s.Only != nil {
		return !s.Only(name)
	}
	return ignored(name)
}

// Sources names the files of the service's folder that are its source, sorted, with slashes: all
// but what builds by hand leave there.
func (s *Service) Sources() (names []string, err error) {
	entries, err := file.Walk(s.Dir, s.ignored)
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return names, err
}

// digest is the SHA-256, in hex, over the sorted names and contents of the files at root (a folder
// or one file), and the sum of their sizes in bytes. Links count by where they point, and nothing
// in the size.
func digest(root string) (sum string, sizeBytes int64, err error) {
	entries, h, err := file.Hash(root, func(string) bool { return false }, true)
	if err != nil {
		return "", 0, err
	}
	for _, e := range entries {
		if e.Info.Mode().IsRegular() {
			sizeBytes += e.Info.Size()
		}
	}
	return hex.EncodeToString(h.Sum(nil)), sizeBytes, nil
}

// copyTree copies entries from one folder to another, which may not exist yet. Files become
// writable for their owner, whatever they were: a build may want to change its copy.
func copyTree(from, to string, entries []file.Entry) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		source := filepath.Join(from, filepath.FromSlash(e.Name))
		target := filepath.Join(to, filepath.FromSlash(e.Name))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if e.Info.Mode().Type() == fs.ModeSymlink {
			link, err := os.Readlink(source)
			if err == nil {
				err = os.Symlink(link, target)
			}
			if err != nil {
				return err
			}
			continue
		}
		data, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		if err := os.WriteFile(target, data, e.Info.Mode().Perm()|0o600); err != nil {
			return err
		}
	}
	return nil
}
