package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/service"
)

// A target that is kept aside is not measured unless it is named: a line says so, and it is in no
// table.
func TestKeptAside(t *testing.T) {
	const name = "go-fiber/otel"
	out, said, exit := say(t, mock{}, "run", "--root", checkout(t), "--targets",
		"go-fiber,go-nethttp", "--blocks", "1")
	if exit != cli.Fine || strings.Contains(out, name) ||
		!strings.Contains(said,
			name+" is excluded by default (--targets "+name+" includes it): it is") {
		t.Errorf("exit %d\n%s\n%s", exit, out, said)
	}
	out, _, exit = say(t, mock{}, "run", "--root", checkout(t), "--targets", name, "--blocks", "1")
	if exit != cli.Fine || strings.Contains(out, "excluded by default") {
		t.Errorf("named, exit %d\n%s", exit, out)
	}
}

// whole is a world whose builds have everything that is printed of them.
type whole struct{ mock }

func (whole) Build(context.Context, *service.Builder, *service.Service) (*service.Built, error) {
	return &service.Built{SHA256: strings.Repeat("0", 64)}, nil
}

// A named service is built, and its further builds only if their tools are installed.
func TestNamedBuilds(t *testing.T) {
	root := checkout(t)
	services, err := service.Catalog(root)
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	exit := cli.Code(run(t.Context(), whole{}, []string{"build", "--root", root, "java-helidon"},
		&stdout, &stderr))
	if exit != cli.Fine {
		t.Fatalf("exit %d\n%s", exit, &stderr)
	}
	tools := service.FindTools(t.Context())
	for _, s := range services {
		if s.Name != "java-helidon" {
			continue
		}
		want := s.Label() + " "
		if s.Other != "" && len(tools.Missing(s)) > 0 {
			want = "skipped " + s.Label() + ": "
		}
		if !strings.Contains("\n"+stdout.String(), "\n"+want) {
			t.Errorf("no line begins with %q:\n%s", want, &stdout)
		}
	}
}

// With --images, a service whose tools are missing gets its image.
func TestImagesWithoutTools(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("JAVA_HOME", "")
	out, stderr, exit := say(t, mock{}, "build", "--root", checkout(t), "--images", "rust-axum")
	if exit != cli.Fine {
		t.Errorf("exit %d: %s", exit, stderr)
	}
	has(t, "the builds", out, "rust-axum ", "only its image, 2.0 MiB: ", "cargo")
}
