package service

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/dev/testsets"
)

// checkstyle runs Maven on the pom of all services, as in CONTRIBUTING.md, and returns its output.
func checkstyle(t *testing.T, folder string) (string, error) {
	t.Helper()
	all, chosen := FindTools(context.Background()), map[string]Tool{}
	for _, need := range []Need{{Tool: "java", Version: "25"}, {Tool: "mvn"}} {
		tool, err := all.resolve(need)
		if err != nil {
			t.Skip(err)
		}
		chosen[need.Tool] = tool
	}
	cmd := exec.Command(chosen["mvn"].Path, "-B", "-N", "verify", "-f", folder)
	cmd.Env = buildEnv(chosen)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// The services' Java follows Google's style, with our deviations.
func TestCheckstyle(t *testing.T) {
	const services = "../../services"
	testsets.Long(t, "Checkstyle on all of the services' Java", testsets.Needs{
		Files: []string{"services"}, Facts: []string{testsets.Version("mvn", "--version")}})
	if out, err := checkstyle(t, services); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	// Both sets of rules find an error, in a service and in a part of one: Google's an import out
	// of order, ours Google's indentation.
	folder := t.TempDir()
	for _, name := range []string{"pom.xml", "checkstyle.xml", "checkstyle-suppressions.xml"} {
		text, err := os.ReadFile(filepath.Join(services, name))
		if err != nil {
			t.Fatal(err)
		}
		before, rest, found := strings.Cut(string(text), "  <modules>")
		if _, after, ok := strings.Cut(rest, "</modules>"); found && ok {
			text = []byte(before + after)
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	check := func(file, text, want string) {
		t.Helper()
		file = filepath.Join(folder, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("package prony;\n\n"+text), 0o644); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(file)
		if out, err := checkstyle(t, folder); err == nil || !strings.Contains(out, want) {
			t.Errorf("error %v, want one with %q:\n%s", err, want, out)
		}
	}
	const class = "/** A class. */\nclass X {\n"
	check("java-a/src/main/java/prony/X.java", "import java.util.Map;\nimport java.util.List;\n\n"+
		class+"}\n", "(imports) CustomImportOrder")
	check("java-b/part/src/main/java/prony/X.java", class+"  int two;\n}\n",
		"(indentation) Indentation")
}
