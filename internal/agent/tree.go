package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path"

	"prony/internal/file"
)

// bytecode is left out of digests: Python writes it where it likes, with times in it.
const bytecode = "__pycache__"

// sumTree is the SHA-256, in hex, over the sorted names and contents of the files below root. Links
// count by where they point.
func sumTree(root string) (string, error) {
	entries, err := file.Walk(root, func(name string) bool { return path.Base(name) == bytecode })
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, e := range entries {
		if err := e.AddTo(h, root, false); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}
