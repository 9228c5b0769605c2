// Command pin renews the digests that base images are pinned by in Dockerfiles: FROM NAME:TAG, with
// or without a digest, becomes FROM NAME:TAG@sha256:… of what the tag means in its registry now.
//
//	go run ./internal/dev/pinimages [DOCKERFILE...]
//
// Without files it is those of services/ and deploy/. Registries are asked by Docker's buildx, with
// the logins that it has; nothing is pulled. When one cannot be asked, no file is changed.
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

// from is an instruction up to the image that it names.
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

// pinned is a Dockerfile with every base at the digest that its tag means now; known are those that
// were asked for before.
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

// ask gives the digest of what a name means in its registry: of the list of images of all
// platforms, where there is one.
func ask(ctx context.Context, name string) (string, error) {
	cmd := exec.CommandContext(ctx, "docker", "buildx", "imagetools", "inspect", "--format",
		"{{json .Manifest}}", name) // of {{.Manifest.Digest}} it makes a page
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
