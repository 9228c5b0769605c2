//go:build linux && !portable

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/service/scaffold"
)

func (a *app) newCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "new", Short: "Create a new service in a checkout", Args: cli.Arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.newServiceCmd())
	return c
}

func (a *app) newServiceCmd() *cobra.Command {
	var like string
	c := &cobra.Command{
		Use: "service LANGUAGE-FRAMEWORK", Short: "Create a service that keeps its contracts",
		Args: cli.Arguments(1, 1),
		Long: `Service makes services/LANGUAGE-FRAMEWORK, for the languages ` +
			strings.Join(scaffold.Languages(), ", ") + `.
It copies the simplest service of that language, or the one of --like, under the new name, and adds
a line to each list of services in the checkout. The new service keeps its contracts. Then change
the framework step by step, with prony verify after each. Service overwrites no file. If one file
cannot be written, it writes none.`,
		Example: "  prony new service go-chi\n  prony new service java-robaho --like java-javahttp",
		RunE: func(c *cobra.Command, args []string) error {
			return a.newService(args[0], like)
		},
	}
	c.Flags().StringVar(&like, "like", "",
		"service of the catalog to copy (default: the simplest service of the language)")
	return c
}

func (a *app) newService(name, like string) error {
	simplest, err := scaffold.Pattern(name)
	if err != nil {
		return cli.Usage(err)
	}
	like = cmp.Or(like, simplest)
	root, err := a.root()
	if err != nil {
		return err
	}
	l, err := scaffold.Plan(root, name, like)
	if errors.Is(err, fs.ErrExist) {
		return cli.Usage(err)
	}
	if err != nil {
		return err
	}
	if err := l.Write(root); err != nil {
		return err
	}
	fmt.Fprint(a.stdout, l.Next())
	return nil
}
