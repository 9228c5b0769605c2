package service

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"prony.example/internal/base/files"
)

const (
	// buildStage is the stage of a Dockerfile that makes the artifact.
	buildStage = "build"
	dropLimit  = 30 * time.Second // to remove its image
)

// fetches are tools that only fetch and pack: their version does not change results.
var fetches = map[string]bool{"mvn": true, "npm": true}

// Versions returns the versions of the tools that made and run a build's targets, from its image or
// this machine; empty for nil.
func (b *Built) Versions() map[string]string {
	out := map[string]string{}
	if b == nil {
		return out
	}
	for name, tool := range b.Tools {
		out[name] = tool.String()
	}
	return out
}

// toolsOf reads the versions of the needed tools from an image, once for each image: tools of the
// run time are in the image, compilers only in the stage that made it. A tool in neither is left
// out.
func (b *Builder) toolsOf(ctx context.Context, i *image, id string, needs []Need) (map[string]Tool,
	error) {
	dir := strings.TrimSuffix(i.log, ".log") + ".tools.json"
	var known struct {
		Image string
		Tools map[string]Tool
	}
	if data, err := os.ReadFile(dir); err == nil && json.Unmarshal(data, &known) == nil &&
		known.Image == id && known.Tools != nil {
		return known.Tools, nil
	}
	known.Image, known.Tools = id, map[string]Tool{}
	var lacks []Need
	for _, need := range needs {
		if !fetches[need.Tool] && !i.tell(ctx, i.tag, need.Tool, known.Tools) {
			lacks = append(lacks, need)
		}
	}
	lacks, err := i.tellMaker(ctx, lacks, known.Tools)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if len(lacks) > 0 { // perhaps because the engine was slow: the next time it is asked again
		b.say("image %s does not report the version of %s that built it%s",
			i.tag, lacks[0].Tool, because(err))
		return known.Tools, nil
	}
	data, err := json.Marshal(known)
	if err != nil {
		return nil, fmt.Errorf("store the tools of %s: %w", i.tag, err)
	}
	return known.Tools, files.Put(dir, data)
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// tellMaker reads versions of tools that the image lacks from its build stage, and returns those
// still missing.
func (i *image) tellMaker(ctx context.Context, needs []Need, to map[string]Tool) (lacks []Need,
	err error) {
	if len(needs) == 0 {
		return nil, nil
	}
	maker, drop, err := i.maker(ctx)
	if err != nil {
		return needs, err
	}
	defer drop()
	return slices.DeleteFunc(needs, func(need Need) bool {
		return i.tell(ctx, maker, need.Tool, to)
	}), nil
}

// tell adds the version of a tool in an image to a map, and reports whether the image has the tool.
func (i *image) tell(ctx context.Context, image, tool string, to map[string]Tool) bool {
	for _, kind := range toolKinds {
		if kind.name != tool {
			continue
		}
		for _, program := range kind.programs {
			args := append([]string{"run", "--rm", "--network", "none", "--entrypoint", program,
				image}, kind.request...)
			text, err := askTool(ctx, os.Environ(), i.docker, args...)
			if version := versionIn(text); err == nil && version != "" {
				to[tool] = Tool{Path: program, Version: version,
					Edition: editionIn(tool, text)}
				return true
			}
		}
	}
	return false
}

// maker returns the image of the stage that made the artifact, from the builder's cache; drop
// removes its name.
func (i *image) maker(ctx context.Context) (id string, drop func(), err error) {
	text, err := os.ReadFile(filepath.Join(i.dir, i.file))
	if err != nil {
		return "", nil, err
	}
	if !strings.Contains(strings.ToLower(string(text)), " as "+buildStage+"\n") {
		return "", nil, fmt.Errorf("the file %s of the service has no stage %q", i.file, buildStage)
	}
	stage := *i
	stage.tag += "-" + buildStage
	stage.log += "-" + buildStage
	if err := stage.build(ctx, "--target", buildStage); err != nil {
		return "", nil, err
	}
	return stage.tag, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropLimit)
		defer cancel()
		// If this fails, the name is removed with the images of earlier sources.
		_ = Command(ctx, os.TempDir(), os.Environ(), i.docker, "image", "rm", stage.tag).Run()
		_ = os.Remove(stage.log)
	}, nil
}
