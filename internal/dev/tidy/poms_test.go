package tidy

import (
	"encoding/xml"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each Java service can be read and built alone, so it has no parent here. Artifacts that several
// of them use must all the same have one version, because differences between versions would appear
// as differences between frameworks.

// pom is the part of a Maven project that is checked.
type pom struct {
	Properties   properties `xml:"properties"`
	Dependencies []artifact `xml:"dependencies>dependency"`
	Managed      []artifact `xml:"dependencyManagement>dependencies>dependency"`
	Plugins      []artifact `xml:"build>plugins>plugin"`
	Tools        []artifact `xml:"build>pluginManagement>plugins>plugin"`
}

// reactor builds all projects at once.
const reactor = "services/pom.xml"

// findModules requires every Maven project of a service's folder in the one build of all, and no
// other, and that mvn checkstyle:check works in each.
func findModules(t tree) []problem {
	var p struct {
		Modules []string `xml:"modules>module"`
	}
	if err := xml.Unmarshal([]byte(t[reactor]), &p); err != nil {
		return []problem{{reactor, 0, "is no XML: " + err.Error()}}
	}
	var problems []problem
	for _, m := range p.Modules {
		if _, ok := t["services/"+m+"/pom.xml"]; !ok {
			problems = append(problems, problem{reactor, 0, m + " is no Maven project"})
		}
	}
	for _, name := range t.names() {
		if ok, _ := path.Match("services/*/pom.xml", name); !ok {
			continue
		}
		if m := path.Base(path.Dir(name)); !slices.Contains(p.Modules, m) {
			problems = append(problems, problem{reactor, 0, "does not build " + m})
		}
		if !strings.Contains(t[name], "checkstyle-suppressions.xml") {
			problems = append(problems, problem{name, 0, "has no maven-checkstyle-plugin: copy " +
				"it from another pom.xml"})
		}
	}
	return problems
}

func TestModules(t *testing.T) {
	pom := func(modules ...string) string {
		return "<project><modules><module>" + strings.Join(modules, "</module><module>") +
			"</module></modules></project>"
	}
	const checked = "<configuration>checkstyle-suppressions.xml</configuration>"
	red(t, findModules, tree{reactor: pom("a", "b"), "services/a/pom.xml": checked,
		"services/b/pom.xml": checked, "services/b/part/pom.xml": "", "services/c/go.mod": ""})
	red(t, findModules, tree{reactor: pom("a", "b"), "services/a/pom.xml": checked,
		"services/c/pom.xml": ""}, "services/c/pom.xml: has no maven-checkstyle-plugin",
		"services/pom.xml: b is no Maven project", "services/pom.xml: does not build c")
	red(t, findModules, tree{reactor: "<project>"}, "services/pom.xml: is no XML")
}

type artifact struct {
	Group   string `xml:"groupId"`
	Name    string `xml:"artifactId"`
	Version string `xml:"version"`

	Needs []artifact `xml:"dependencies>dependency"` // of a plugin
}

type properties map[string]string

// UnmarshalXML reads elements with unknown names.
func (p *properties) UnmarshalXML(d *xml.Decoder, start xml.StartElement) error {
	*p = properties{}
	for {
		token, err := d.Token()
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			var value string
			if err := d.DecodeElement(&value, &t); err != nil {
				return err
			}
			(*p)[t.Name.Local] = strings.TrimSpace(value)
		case xml.EndElement:
			return nil
		}
	}
}

var placeholder = regexp.MustCompile(`\$\{([^}]+)\}`)

// findVersions requires one version of each artifact and plugin that several services' poms name.
// Artifacts without a version of their own have it from a bill of materials, which has one.
func findVersions(t tree) []problem {
	type use struct{ file, version string }
	first := map[string]use{}
	var problems []problem
	for _, name := range t.names() {
		if path.Base(name) != "pom.xml" || !strings.HasPrefix(name, "services/") {
			continue
		}
		var p pom
		if err := xml.Unmarshal([]byte(t[name]), &p); err != nil {
			problems = append(problems, problem{name, 0, "is no XML: " + err.Error()})
			continue
		}
		lists := [][]artifact{p.Dependencies, p.Managed, p.Plugins, p.Tools}
		for _, plugin := range slices.Concat(p.Plugins, p.Tools) {
			lists = append(lists, plugin.Needs)
		}
		for _, list := range lists {
			for _, a := range list {
				version := placeholder.ReplaceAllStringFunc(a.Version, func(s string) string {
					return p.Properties[s[2:len(s)-1]]
				})
				id := a.Group + ":" + a.Name
				before, known := first[id]
				switch {
				case version == "":
				case !known:
					first[id] = use{name, version}
				case before.version != version:
					problems = append(problems, problem{name, 0, fmt.Sprintf(
						"has %s %s, and %s has %s", id, version, before.file, before.version)})
				}
			}
		}
	}
	return problems
}

func TestVersions(t *testing.T) {
	of := func(property, dependency string) string {
		return "<project><properties><j.version>" + property + "</j.version></properties>" +
			"<dependencies><dependency><groupId>g</groupId><artifactId>j</artifactId><version>" +
			dependency + "</version></dependency></dependencies></project>"
	}
	red(t, findVersions, tree{
		"services/a/pom.xml": of("1", "${j.version}"), "services/b/pom.xml": of("2", "1"),
		"web/pom.xml": of("7", "7"),
	})
	red(t, findVersions, tree{
		"services/a/pom.xml": of("1", "${j.version}"),
		"services/b/pom.xml": of("2", "${j.version}"),
	}, "services/b/pom.xml: has g:j 2, and services/a/pom.xml has 1")
	red(t, findVersions, tree{
		"services/a/pom.xml": of("1", ""), "services/b/pom.xml": of("2", "2"),
	})
	plugin := func(version string) string {
		return "<plugins><plugin><groupId>g</groupId><artifactId>p</artifactId><dependencies>" +
			"<dependency><groupId>g</groupId><artifactId>c</artifactId><version>" + version +
			"</version></dependency></dependencies></plugin></plugins>"
	}
	red(t, findVersions, tree{
		"services/pom.xml": "<project><build>" + plugin("1") + "</build></project>",
		"services/a/pom.xml": "<project><build><pluginManagement>" + plugin("2") +
			"</pluginManagement></build></project>",
	}, "services/pom.xml: has g:c 1, and services/a/pom.xml has 2")
	red(t, findVersions, tree{"services/a/pom.xml": "<project>"},
		"services/a/pom.xml: is no XML")
}
