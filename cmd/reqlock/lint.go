package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/reqlock/reqlock/internal/adapter/annotated"
)

// lintFlags are the flags of lint.
type lintFlags struct {
	set     string
	sources []string
	table   bool
}

// parse reads the flags. It reports a mistake itself. The error is flag.ErrHelp if the user asks
// for help.
func (f *lintFlags) parse(args []string, problems io.Writer) error {
	flags := flag.NewFlagSet("reqlock lint", flag.ContinueOnError)
	flags.SetOutput(problems)
	flags.StringVar(&f.set, "descriptor_set", "", "the compiled descriptor set `FILE`, with its imports")
	flags.Func("source", "the `NAME` of a grpclock.Source of the program; without this flag, all names are accepted",
		func(name string) error { f.sources = append(f.sources, name); return nil })
	flags.BoolVar(&f.table, "table", false, "print the table of all rules")
	if err := flags.Parse(args); err != nil {
		return err // it is reported
	}
	var err error
	switch {
	case f.set == "":
		err = errors.New("reqlock: lint: --descriptor_set is missing")
	case flags.NArg() > 0:
		err = fmt.Errorf("reqlock: lint: %q is no flag", flags.Arg(0))
	default:
		return nil
	}
	fmt.Fprintf(problems, "%v\n%s\n", err, usage)
	return err
}

// lint checks the services of a descriptor set.
func lint(args []string, out, problems io.Writer) int {
	var f lintFlags
	switch err := f.parse(args, problems); {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	}
	services, err := readServices(f.set)
	if err != nil {
		fmt.Fprintf(problems, "reqlock: lint: --descriptor_set: %v\n", err)
		return exitUsage
	}
	methods, err := annotated.Read(services, annotated.Program{Sources: f.sources, AnySource: len(f.sources) == 0})
	if err != nil {
		fmt.Fprintln(out, err)
		return exitMistakes
	}
	annotatedOnes := methodsOfAnnotated(methods)
	if len(annotatedOnes) == 0 {
		fmt.Fprintf(out, "reqlock: lint: %s: no method declares anything\n", f.set)
		return exitMistakes // a set without the annotated files would pass for ever
	}
	if f.table {
		printTable(out, annotatedOnes)
	}
	if names := sourcesOf(annotatedOnes); len(f.sources) == 0 && len(names) > 0 {
		fmt.Fprintf(out, "sources, whose names were not checked: %s\n", strings.Join(names, ", "))
	}
	return exitOK
}

// methodsOfAnnotated returns the methods of the services in which a method declares something.
func methodsOfAnnotated(methods []*annotated.Method) []*annotated.Method {
	declares := make(map[protoreflect.FullName]bool)
	for _, m := range methods {
		if m.IsDeclared() {
			declares[m.Descriptor.Parent().FullName()] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(methods), func(m *annotated.Method) bool {
		return !declares[m.Descriptor.Parent().FullName()]
	})
}

// sourcesOf returns the names of the sources that keys have.
func sourcesOf(methods []*annotated.Method) (names []string) {
	add := func(parts []annotated.Part) {
		for _, part := range parts {
			if part.Kind == annotated.Source {
				names = append(names, part.Text)
			}
		}
	}
	for _, m := range methods {
		for _, lock := range m.Locks {
			add(lock.Key)
		}
		if m.Idempotent != nil {
			add(m.Idempotent.Key)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// printTable prints all rules.
func printTable(out io.Writer, methods []*annotated.Method) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "METHOD\tRULE\tNAME\tKEY\tSETTINGS")
	for _, m := range methods {
		for _, rule := range m.Rules() {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", rule.Method, rule.Kind, rule.Name, rule.Key, rule.Settings)
		}
	}
	_ = table.Flush()
}
