package own

import (
	"fmt"
	"path/filepath"
	"slices"

	"prony/internal/service"
	"prony/internal/suite"
)

// Sources are the targets of a project's file, in its order; dir is its folder.
func Sources(p *suite.Project, dir string) (out []Source, err error) {
	for _, name := range p.Names {
		t := p.Targets[name]
		from := Source{Name: name, File: p.File, Command: t.Command, URL: t.URL, Image: t.Image,
			Port: t.Port, Revision: t.Git, Dir: filepath.Join(dir, t.Dir), Env: map[string]string{}}
		if t.Dir != "" && !filepath.IsLocal(t.Dir) {
			return nil, fmt.Errorf("%s: target %s: dir %s is not below the file's folder", p.File,
				name, t.Dir)
		}
		from.Built, from.Connections, from.Body = t.Built, t.Connections, t.Body
		if t.Compose.Service != "" {
			from.Port = t.Compose.Port
			from.Compose = &service.Compose{File: t.Compose.File, Service: t.Compose.Service}
		}
		if t.Build != "" {
			from.Steps = [][]string{{"sh", "-c", t.Build}}
		}
		for key, value := range t.Env {
			from.Env[key] = string(value)
		}
		for _, p := range t.Processes {
			args, err := Words(p.Command)
			if err != nil {
				return nil, from.wrong("process "+p.Name, err)
			}
			before := service.Process{Name: p.Name, Command: args, Ready: p.Ready, Share: p.Share,
				Backing: p.Backing, Env: map[string]string{}}
			for key, value := range p.Env {
				before.Env[key] = string(value)
			}
			from.Before = append(from.Before, before)
		}
		from.Counters = t.Counters
		for _, need := range slices.Concat(p.Needs, t.Needs) {
			ask := []string{need.Tool, "--version"}
			if need.Version != "" {
				if ask, err = Words(need.Version); err != nil {
					return nil, fmt.Errorf("%s: version of %s: %w", p.File, need.Tool, err)
				}
			}
			from.Wants = append(from.Wants, service.Want{Tool: need.Tool, Ask: ask})
		}
		out = append(out, from)
	}
	return out, nil
}
