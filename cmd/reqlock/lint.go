package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/reqlock/reqlock/internal/annotated"
)

// beginLint adds the flags of lint.
func beginLint(f *flag.FlagSet) action {
	var l linting
	f.StringVar(&l.set, "descriptor_set", "", "the compiled descriptor set `FILE`, with its imports")
	f.Func("source", "the `NAME` of a protolock.Source of the program; without this flag, all names are accepted", appendTo(&l.sources))
	f.Func("in_code", "the full name of a `METHOD` of protolock.InCode, /pkg.Service/Method", appendTo(&l.inCode))
	f.BoolVar(&l.table, "table", false, "print the table of all rules")
	return l.run
}

// A linting is what the flags of lint say.
type linting struct {
	set     string
	sources []string
	inCode  []string
	table   bool
}

// run checks the services of a descriptor set.
func (l *linting) run(_ context.Context, c *call) error {
	if l.set == "" {
		return misuse("--descriptor_set is missing")
	}
	services, err := readServices(l.set)
	if err != nil {
		fmt.Fprintf(c.problems, "reqlock: lint: --descriptor_set: %v\n", err)
		return silentError(exitUsage)
	}
	program := annotated.Program{Sources: l.sources, AnySource: len(l.sources) == 0, InCode: l.inCode}
	methods, err := annotated.Read(services, program)
	if name := unknownMethod(l.inCode, methods); name != "" {
		fmt.Fprintf(c.problems, "reqlock: lint: --in_code: %s has no method %q\n", l.set, name)
		return silentError(exitUsage)
	}
	if err != nil {
		fmt.Fprintln(c.out, err)
		return silentError(exitError)
	}
	annotatedOnes := methodsOfAnnotated(methods)
	if len(annotatedOnes) == 0 {
		fmt.Fprintf(c.out, "reqlock: lint: %s: no method declares anything\n", l.set)
		return silentError(exitError) // a set without the annotated files would pass for ever
	}
	if l.table {
		c.printRules(annotatedOnes)
	}
	if names := sourcesOf(annotatedOnes); len(l.sources) == 0 && len(names) > 0 {
		fmt.Fprintf(c.out, "sources, whose names were not checked: %s\n", strings.Join(names, ", "))
	}
	return nil
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

// printRules prints all rules.
func (c *call) printRules(methods []*annotated.Method) {
	var rows [][]string
	for _, m := range methods {
		for _, rule := range m.Rules() {
			rows = append(rows, []string{rule.Method, rule.Kind, rule.Name, rule.Key, rule.Settings})
		}
	}
	c.table(c.out, []string{"METHOD", "RULE", "NAME", "KEY", "SETTINGS"}, rows)
}
