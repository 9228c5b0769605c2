package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
)

// Bounds of the cache of documents.
const (
	maxKept      = 32
	maxKeptBytes = 64 << 20
)

// kept caches the last documents, by their subject and the stamps of their files.
type kept struct {
	mu   sync.Mutex
	docs []document // the last requested document is the last
}

type document struct {
	key  string
	body []byte
}

func (k *kept) find(key string) ([]byte, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	index := slices.IndexFunc(k.docs, func(d document) bool { return d.key == key })
	if index < 0 {
		return nil, false
	}
	d := k.docs[index]
	k.docs = append(slices.Delete(k.docs, index, index+1), d)
	return d.body, true
}

func (k *kept) add(key string, body []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.docs = append(slices.DeleteFunc(k.docs, func(d document) bool { return d.key == key }),
		document{key, body})
	size := 0
	for _, d := range k.docs {
		size += len(d.body)
	}
	for len(k.docs) > 1 && (len(k.docs) > maxKept || size > maxKeptBytes) {
		size -= len(k.docs[0].body)
		k.docs = slices.Delete(k.docs, 0, 1)
	}
}

// present responds with a document, and makes it only if the cache has none for the current state
// of these runs. A browser that already has it gets 304. Requests that make documents wait for
// their turn.
func (s *Server) present(w http.ResponseWriter, r *http.Request, kind, subject string, ids []string,
	print func(io.Writer) error) error {
	key := subject
	for _, id := range ids {
		stamps, err := s.Runs.Stamps(id)
		if err != nil {
			return err
		}
		key += fmt.Sprintf(" %s %v", id, stamps)
	}
	sum := sha256.Sum256([]byte(s.Version + "\n" + key))
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Etag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	body, ok := s.built.find(key)
	if !ok {
		var err error
		if body, err = s.build(r.Context(), print); err != nil {
			return err
		}
		s.built.add(key, body)
	}
	_, err := w.Write(body) // without a turn, because a client may read slowly
	return ignore(err)
}

// build makes a document when it is its turn.
func (s *Server) build(ctx context.Context, print func(io.Writer) error) ([]byte, error) {
	leave, err := s.turn(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var b bytes.Buffer
	err = print(&b)
	return b.Bytes(), err
}

// turn waits until few other requests work or start programs.
func (s *Server) turn(ctx context.Context) (leave func(), err error) {
	select {
	case s.heavy <- struct{}{}:
		return func() { <-s.heavy }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
