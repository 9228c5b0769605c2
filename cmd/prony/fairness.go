//go:build linux && !portable

package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"prony.example/internal/suite"
	"prony.example/internal/trial/lab"
)

// fairnessSection is the name of the marks around the table in docs/fairness.md.
const fairnessSection = "heads"

func (a *app) fairnessCmd() *cobra.Command {
	var page string
	c := &cobra.Command{
		Use:   "fairness [SERVICE[/TARGET]...]",
		Short: "Compare what the services' answers look like",
		Args:  cobra.ArbitraryArgs,
		Long: `Fairness verifies services as verify does and prints, for each request that suites
measure, how many bytes the head and the body of each target's answer take, which headers it adds to
those that the contract wants, and whether it keeps the connection; then what differs. Bodies are
equal by contract; heads are the framework's own business, and part of what a request costs.

With --update it rewrites the part of a Markdown file between <!-- prony:begin heads --> and
<!-- prony:end heads -->; targets of the catalog that cannot run here keep the row that they have.`,
		Example: "  prony fairness go-nethttp rust-axum\n" +
			"  prony fairness --update docs/fairness.md",
		RunE: func(c *cobra.Command, args []string) error {
			rows, err := a.fairRows(c.Context(), args, false, nil)
			if page != "" {
				return errors.Join(err, a.updateFairness(page, rows))
			}
			return errors.Join(err, printFairness(a.stdout, rows))
		},
	}
	c.Flags().StringVar(&page, "update", "", "Markdown file whose section is to be rewritten")
	return c
}

// fairRows verifies services, spoken: in every protocol, and gives a row for each of their targets,
// of HTTP/1.1. What verify would print goes beside the table, as progress does. Tests look at each
// target themselves, too (nil: nobody).
func (a *app) fairRows(ctx context.Context, names []string, spoken bool,
	too lab.Sight) ([]fairRow, error) {
	aside := *a
	aside.stdout = a.stderr
	v := &verifier{app: &aside}
	var rows []fairRow
	plain := suite.Launchers[0]
	err := aside.visit(ctx, names, plain, spoken, func(ctx context.Context, t lab.Seen) error {
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
