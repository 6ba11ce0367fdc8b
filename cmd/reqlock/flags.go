package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
)

// lintFlags are the flags of lint.
type lintFlags struct {
	set     string
	sources []string
	inCode  []string
	table   bool
}

// parse reads the flags. It reports a mistake itself. The error is flag.ErrHelp if the user asks
// for help, which it prints.
func (f *lintFlags) parse(args []string, out, problems io.Writer) error {
	flags := flag.NewFlagSet("reqlock lint", flag.ContinueOnError)
	flags.SetOutput(problems)
	flags.Usage = func() {} // printed below
	flags.StringVar(&f.set, "descriptor_set", "", "the compiled descriptor set `FILE`, with its imports")
	flags.Func("source", "the `NAME` of a protolock.Source of the program; without this flag, all names are accepted", appendTo(&f.sources))
	flags.Func("in_code", "the full name of a `METHOD` of protolock.InCode, /pkg.Service/Method", appendTo(&f.inCode))
	flags.BoolVar(&f.table, "table", false, "print the table of all rules")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(out, usage)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return err
	case err != nil: // it is reported
		fmt.Fprintln(problems, usage)
		return err
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

// appendTo returns the function of a flag that may be repeated.
func appendTo(values *[]string) func(string) error {
	return func(value string) error {
		*values = append(*values, value)
		return nil
	}
}
