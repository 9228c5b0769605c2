package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"prony/internal/compiler"
	"prony/internal/service"
)

// step is after how many compiled packages a line says so.
const step = 100

// compile builds prony and counts the packages as they come, of which there may be fewer to do.
func compile(ctx context.Context, root string, say func(string)) error {
	all, err := goTool(ctx, root, "list", "-deps", "./cmd/prony").Output()
	if err != nil {
		return fmt.Errorf("build prony: go list: %w; it takes Go 1.26 or newer", err)
	}
	cmd := goTool(ctx, root, compiler.Build("-v", "-o", program, "./cmd/prony")...)
	cmd.Env = append(cmd.Env, compiler.Lavish)
	said, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("build prony: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("build prony: %w", err)
	}
	wrong := count(said, bytes.Count(all, []byte("\n")), say)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("build prony: %w\n%s", err, wrong)
	}
	return nil
}

// count tells how far go build -v is, and returns what else it said: its errors.
func count(said io.Reader, all int, say func(string)) (rest string) {
	var other strings.Builder
	done, fetched := 0, false
	for lines := bufio.NewReaderSize(said, 64<<10); ; {
		piece, _, err := lines.ReadLine() // of a longer line, as a linker's can be
		if err != nil {
			return other.String()
		}
		line := string(piece)
		switch {
		case strings.HasPrefix(line, "go: downloading "):
			if !fetched {
				say("build prony: fetch the modules that it is made of")
			}
			fetched = true
		case strings.ContainsAny(line, " #:"):
			other.WriteString(line + "\n")
		default:
			if done++; done%step == 0 {
				say(fmt.Sprintf("build prony: %d of at most %d packages", done, all))
			}
		}
	}
}

// goTool is Go's own command.
func goTool(ctx context.Context, root string, args ...string) *exec.Cmd {
	return service.Command(ctx, root, os.Environ(), "go", args...)
}
