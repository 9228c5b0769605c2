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

// checkstyle runs Maven in a folder, and returns its output.
func checkstyle(t *testing.T, folder string, goals ...string) (string, error) {
	t.Helper()
	all, chosen := FindTools(context.Background()), map[string]Tool{}
	for _, need := range []Need{{Tool: "java", Version: "25"}, {Tool: "mvn"}} {
		tool, err := all.resolve(need)
		if err != nil {
			t.Skip(err)
		}
		chosen[need.Tool] = tool
	}
	cmd := exec.Command(chosen["mvn"].Path, append([]string{"-B"}, goals...)...)
	cmd.Dir = folder
	cmd.Env = buildEnv(chosen)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// The services' Java follows Google's style, with our deviations.
func TestCheckstyle(t *testing.T) {
	const services = "../../services"
	testsets.Long(t, "Checkstyle on all of the services' Java", testsets.Needs{
		Files: []string{"services"}, Facts: []string{testsets.Version("mvn", "--version")}})
	if out, err := checkstyle(t, services, "-N", "verify"); err != nil {
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
		out, err := checkstyle(t, folder, "-N", "verify")
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("error %v, want one with %q:\n%s", err, want, out)
		}
	}
	const class = "/** A class. */\nclass X {\n"
	check("java-a/src/main/java/prony/X.java", "import java.util.Map;\nimport java.util.List;\n\n"+
		class+"}\n", "(imports) CustomImportOrder")
	check("java-b/part/src/main/java/prony/X.java", class+"  int two;\n}\n",
		"(indentation) Indentation")
}

// Each module can be checked alone, also one of several parts.
func TestCheckstyleOfModule(t *testing.T) {
	const services, rules = "../../services", "checkstyle-suppressions.xml"
	testsets.Long(t, "Checkstyle on single modules", testsets.Needs{
		Files: []string{"services/" + rules, "services/java-netty", "services/java-petclinic"},
		Facts: []string{testsets.Version("mvn", "--version")}})
	folder := t.TempDir()
	text, err := os.ReadFile(filepath.Join(services, rules))
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, rules), text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	const wrong = "package prony;\n\nimport java.util.Map;\nimport java.util.List;\n\n" +
		"/** A class. */\nclass Wrong {\n}\n"
	for module, part := range map[string]string{"java-netty": ".", "java-petclinic": "vets"} {
		copied := filepath.Join(folder, module)
		if err := os.CopyFS(copied, os.DirFS(filepath.Join(services, module))); err != nil {
			t.Fatal(err)
		}
		if out, err := checkstyle(t, copied, "checkstyle:check"); err != nil {
			t.Errorf("%s: %v\n%s", module, err, out)
		}
		file := filepath.Join(copied, part, "src", "main", "java", "prony", "Wrong.java")
		if err := os.WriteFile(file, []byte(wrong), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := checkstyle(t, copied, "checkstyle:check")
		if err == nil || !strings.Contains(out, "(imports) CustomImportOrder") {
			t.Errorf("%s: error %v, want one of the order of imports:\n%s", module, err, out)
		}
	}
}
