package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/reqlock/reqlock/internal/annotated"
)

// lint checks the services of a descriptor set.
func lint(args []string, out, problems io.Writer) int {
	var f lintFlags
	switch err := f.parse(args, out, problems); {
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
	program := annotated.Program{Sources: f.sources, AnySource: len(f.sources) == 0, InCode: f.inCode}
	methods, err := annotated.Read(services, program)
	if name := unknownMethod(f.inCode, methods); name != "" {
		fmt.Fprintf(problems, "reqlock: lint: --in_code: %s has no method %q\n", f.set, name)
		return exitUsage
	}
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

// unknownMethod returns the first of the full names that no method has, or "".
func unknownMethod(names []string, methods []*annotated.Method) string {
	for _, name := range names {
		if !slices.ContainsFunc(methods, func(m *annotated.Method) bool { return m.FullMethod() == name }) {
			return name
		}
	}
	return ""
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

// sourcesOf returns the names of the sources that keys have, quoted.
func sourcesOf(methods []*annotated.Method) (names []string) {
	add := func(parts []annotated.Part) {
		for _, part := range parts {
			if part.Kind == annotated.Source {
				names = append(names, strconv.Quote(part.Text))
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
