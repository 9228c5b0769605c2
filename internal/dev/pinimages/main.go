// Command pinimages updates the digests of base images in Dockerfiles: FROM NAME:TAG, with or
// without a digest, becomes FROM NAME:TAG@sha256:… with the current digest of the tag in its
// registry.
//
//	go run ./internal/dev/pinimages [DOCKERFILE...]
//
// The default files are those of services/ and deploy/. Docker's buildx queries the registries with
// its logins; nothing is pulled. If a query fails, no file is changed.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/files"
	"prony.example/internal/service"
)

// from matches an instruction up to the name of its image.
const from = `(?mi)^(FROM\s+(?:--\S+\s+)*|COPY\s+(?:--\S+\s+)*--from=)`

var digest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "pin:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, fileList []string, out io.Writer) error {
	if len(fileList) == 0 {
		for _, pattern := range []string{"services/*/Dockerfile*", "deploy/*/Dockerfile*"} {
			matches, err := filepath.Glob(pattern)
			if err != nil {
				return err
			}
			fileList = append(fileList, matches...)
		}
	}
	if len(fileList) == 0 {
		return errors.New("there is no Dockerfile: name them, or call it at the root of a checkout")
	}
	known := map[string]string{}
	texts := make([]string, len(fileList))
	for i, name := range fileList {
		text, err := files.Kept(name, files.Settings)
		if err == nil {
			texts[i], err = pinned(ctx, string(text), known)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if texts[i] == string(text) {
			texts[i] = ""
		}
	}
	for i, name := range fileList {
		if texts[i] == "" {
			continue
		}
		if err := files.Put(name, []byte(texts[i])); err != nil {
			return err
		}
		fmt.Fprintln(out, name)
	}
	return nil
}

// pinned returns a Dockerfile with the current digest of every base image. known caches digests by
// name.
func pinned(ctx context.Context, text string, known map[string]string) (_ string, err error) {
	for _, base := range service.Bases(text) {
		name, _, _ := strings.Cut(base, "@")
		if known[name] == "" {
			if known[name], err = ask(ctx, name); err != nil {
				return "", err
			}
		}
		place := regexp.MustCompile(from + regexp.QuoteMeta(base) + `(\s|$)`)
		text = place.ReplaceAllString(text, "${1}"+name+"@"+known[name]+"${2}")
	}
	return text, nil
}

// ask returns the current digest of a name in its registry: that of the list of images for all
// platforms, if there is one.
func ask(ctx context.Context, name string) (string, error) {
	cmd := exec.CommandContext(ctx, "docker", "buildx", "imagetools", "inspect", "--format",
		"{{json .Manifest}}", name) // {{.Manifest.Digest}} would print a page
	cmdlog.Command(cmd)
	var output bytes.Buffer
	cmd.Stderr = &output
	answer, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("ask for %s: %w: %s", name, err, strings.TrimSpace(output.String()))
	}
	var item struct{ Digest string }
	if err := json.Unmarshal(answer, &item); err != nil || !digest.MatchString(item.Digest) {
		return "", fmt.Errorf("ask for %s: %q has no digest", name, answer)
	}
	return item.Digest, nil
}
