package service

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"prony.example/internal/base/strictyaml"
)

// Compose is a service of a Compose file, started with all its dependencies.
type Compose struct {
	Program []string // the command of Compose, such as docker compose; set by its build
	File    string   // path in the folder of the service
	Service string   // receives the requests
	Model   []byte   // resolved file, as JSON; set by its build
}

// errNoCompose says how to install Compose.
var errNoCompose = errors.New("needs docker compose: neither docker compose nor docker-compose " +
	"of version 2 was found (install Docker's package docker-compose-plugin)")

// composer returns the command of Compose. It skips docker-compose of version 1, which has no JSON.
func composer(ctx context.Context) ([]string, error) {
	for _, program := range [][]string{{"docker", "compose"}, {"docker-compose"}} {
		if _, err := exec.LookPath(program[0]); err != nil {
			continue
		}
		args := append(slices.Clone(program[1:]), "version", "--short")
		output, err := Command(ctx, os.TempDir(), os.Environ(), program[0], args...).Output()
		if err == nil && !strings.HasPrefix(strings.TrimSpace(string(output)), "1.") {
			return program, nil
		}
	}
	return nil, errNoCompose
}

// composed has the fields of a resolved Compose file that this package reads.
type composed struct {
	Services map[string]struct {
		Image  string          `json:"image"`
		Build  json.RawMessage `json:"build"`
		Ports  []composedPort  `json:"ports"`
		Expose []string        `json:"expose"`
	} `json:"services"`
}

type composedPort struct {
	Target   int    `json:"target"`
	Protocol string `json:"protocol"`
}

// compose resolves the Compose file and builds its images. It pulls nothing, so the trial measures
// the images that are present now.
func (b *Builder) compose(ctx context.Context, docker string, s *Service) (*Built, error) {
	built, compose := *s.Made, *s.Made.Compose
	var err error
	if compose.Program, err = composer(ctx); err != nil {
		return nil, err
	}
	// The name of the images that Compose builds, the same in each run.
	where := sha256.Sum256([]byte(s.Dir + "\n" + compose.File))
	project := "prony-" + hex.EncodeToString(where[:])[:hashDigits]
	run := func(args ...string) (string, error) {
		return runCompose(ctx, s, compose, append([]string{"--project-name", project}, args...)...)
	}
	model, err := run("config", "--format", "json")
	if err != nil {
		return nil, err
	}
	var known composed
	if err := json.Unmarshal([]byte(model), &known); err != nil {
		return nil, fmt.Errorf("read Compose's output for %s: %w", compose.File, err)
	}
	front, ok := known.Services[compose.Service]
	if !ok {
		names := slices.Sorted(maps.Keys(known.Services))
		return nil, fmt.Errorf(
			"%s has no service %q; %s",
			compose.File,
			compose.Service,
			strictyaml.Meant(
				compose.Service, names, "its services are "+strings.Join(names, ", ")),
		)
	}
	if built.Port == 0 {
		if built.Port, err = portOf(front.Ports, front.Expose); err != nil {
			return nil, fmt.Errorf("service %s of %s %w", compose.Service, compose.File, err)
		}
	}
	for name, item := range known.Services {
		if item.Build != nil {
			b.say("build service %s of %s", name, compose.File)
		}
	}
	if _, err := run("build"); err != nil {
		return nil, err
	}
	built.Front = cmp.Or(
		front.Image,
		project+"-"+compose.Service,
	) // the name that Compose gives to images it builds
	i := image{docker: docker, tag: built.Front}
	id, size := i.look(ctx)
	if id == "" {
		return nil, fmt.Errorf("the Docker engine has no image %s, and Prony does not pull "+
			"images; run %s pull first", i.tag, strings.Join(compose.Program, " "))
	}
	if compose.Model, err = pinned(ctx, docker, project, []byte(model)); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(compose.Model)
	built.Compose, built.Hash = &compose, hex.EncodeToString(sum[:])
	built.SHA256, built.SizeBytes, built.ImageBytes = strings.TrimPrefix(id, "sha256:"), size, size
	built.Images, built.Tools = map[string]string{"": built.Front}, map[string]Tool{}
	return &built, nil
}

// pinned replaces each image name of a model by the image's id: building the next target of the
// same file, with other variables, may move the name.
func pinned(ctx context.Context, docker, project string, model []byte) ([]byte, error) {
	var full map[string]any
	if err := json.Unmarshal(model, &full); err != nil {
		return nil, err
	}
	services, _ := full["services"].(map[string]any)
	for name, value := range services {
		if byName, ok := value.(map[string]any); ok {
			tag, _ := byName["image"].(string)
			i := image{docker: docker, tag: cmp.Or(tag, project+"-"+name)}
			if id, _ := i.look(ctx); id != "" { // if it is needed, Compose fails
				byName["image"] = id
			}
		}
	}
	return json.Marshal(full)
}

// portOf returns the only port on which a service of a Compose file accepts requests. Exposed ports
// are like 80, 80/udp or 8000-8009.
func portOf(ports []composedPort, expose []string) (int, error) {
	const udp = "udp"
	var all []int
	for _, p := range ports {
		if p.Protocol != udp {
			all = append(all, p.Target)
		}
	}
	for _, text := range expose {
		numbers, protocol, _ := strings.Cut(text, "/")
		for number := range strings.SplitSeq(numbers, "-") {
			if port, err := strconv.Atoi(number); err == nil && protocol != udp {
				all = append(all, port)
			}
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) != 1 {
		return 0, fmt.Errorf("has %d ports: set the key port to the port that receives requests",
			len(all))
	}
	return all[0], nil
}

// runCompose returns the output of Compose. Errors include its last output lines.
func runCompose(ctx context.Context, s *Service, compose Compose, args ...string) (string, error) {
	ctx, cancel := bounded(ctx, 0)
	defer cancel()
	args = slices.Concat(
		compose.Program[1:],
		[]string{"--file", compose.File, "--progress", "plain"},
		args,
	)
	env := os.Environ()
	for _, name := range sortedKeys(s.Run.Env) {
		env = append(env, name+"="+s.Run.Env[name])
	}
	cmd := Command(ctx, s.Dir, env, compose.Program[0], args...)
	var out, output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &output
	if err := cmd.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(output.String()), "\n")
		return "", fmt.Errorf("%s: %s: %w:\n  %s", compose.File, strings.Join(compose.Program, " "),
			cmp.Or(context.Cause(ctx), err),
			strings.Join(lines[max(0, len(lines)-tailLines):], "\n  "))
	}
	return out.String(), nil
}
