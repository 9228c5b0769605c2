package cache

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFolder(t *testing.T) {
	root := t.TempDir()
	got, err := Folder(root, "build")
	if want := filepath.Join(root, ".prony", "build"); err != nil || got != want {
		t.Errorf("folder %s, error %v; want %s", got, err, want)
	}
	if info, err := os.Stat(got); err != nil || !info.IsDir() {
		t.Errorf("%s was not made: %v", got, err)
	}
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Folder(file, "build"); err == nil || !strings.Contains(err.Error(), "cache") {
		t.Errorf("below a file: error %v", err)
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	waits := 0
	unlock, err := Lock(t.Context(), path, "build", func() { waits++ })
	if err != nil || waits != 0 {
		t.Fatalf("error %v, waited %d times for nobody", err, waits)
	}
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err = Lock(ctx, path, "build", func() { waits++; cancel(gone) })
	if !errors.Is(err, gone) || !strings.Contains(err.Error(),
		"another process that works on build") || waits != 1 {
		t.Errorf("error %v after %d waits, want one that was given up", err, waits)
	}
	held := make(chan func())
	go func() {
		next, err := Lock(t.Context(), path, "build", func() { unlock() })
		if err != nil {
			t.Error(err)
		}
		held <- next
	}()
	if next := <-held; next != nil {
		next()
	}
}
