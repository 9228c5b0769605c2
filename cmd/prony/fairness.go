//go:build linux && !portable

package main

import (
	"context"
	"slices"
	"strings"

	"prony.example/internal/trial/lab"
)

// fairnessSection is the name of the section with the table in docs/fairness.md.
const fairnessSection = "heads"

// fairRows verifies services, with spoken in every protocol, and returns a row for each target, in
// HTTP/1.1. It prints the verification's output to standard error. Tests pass too to check each
// target themselves; nil: not used.
func (a *app) fairRows(ctx context.Context, names []string, f verifyFlags, spoken bool,
	too lab.Sight) ([]fairRow, error) {
	aside := *a
	aside.stdout = a.stderr
	v := &verifier{app: &aside, verbose: f.verbose}
	var rows []fairRow
	err := aside.visit(ctx, names, f.by, spoken, func(ctx context.Context, t lab.Seen) error {
		heads, err := v.conform(ctx, t)
		if err != nil {
			return err
		}
		if t.Speaks == nil {
			rows = append(rows, newFairRow(t.Name, heads))
		}
		if too != nil {
			return too(ctx, t)
		}
		return nil
	})
	slices.SortFunc(rows, func(a, b fairRow) int { return strings.Compare(a.target, b.target) })
	return rows, v.conclude(err)
}

// updateFairness rewrites the section of a page.
func (a *app) updateFairness(page string, rows []fairRow) error {
	services, err := a.catalog()
	if err != nil {
		return err
	}
	return updatePage(page, fairnessSection, func(old []byte) ([]byte, error) {
		for _, had := range readFairness(string(old)) {
			_, _, there := services.Find(had.target)
			same := func(r fairRow) bool { return r.target == had.target }
			if there && !slices.ContainsFunc(rows, same) {
				rows = append(rows, had)
			}
		}
		slices.SortFunc(rows, func(a, b fairRow) int { return strings.Compare(a.target, b.target) })
		return []byte(fairnessMarkdown(rows)), nil
	})
}
