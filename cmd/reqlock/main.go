// Command reqlock checks what a program declares for reqlock, without running the program.
//
//	reqlock lint --descriptor_set FILE [--source NAME]... [--in_code METHOD]... [--table]
//
// lint checks the annotations of the services in a compiled descriptor set, which protoc writes
// with --include_imports, and buf build always:
//
//	protoc --include_imports --descriptor_set_out=set.binpb -I proto -I third_party bank/v1/bank.proto
//	go get -tool github.com/reqlock/reqlock/cmd/reqlock
//	go tool reqlock lint --descriptor_set set.binpb --source user
//
// A tool has the version of reqlock in go.mod, which is that of the server. (go run has it, too,
// but exits with 1 where the command exits with 2.) The flags are the parts of the rules that
// the file does not have: each --source is a protolock.Source, and each --in_code a method of
// protolock.InCode, "/pkg.Service/Method".
//
// lint prints each mistake on a line, as protolock.New returns them. The exit status is 0
// if there is no mistake, 1 if there are mistakes, and 2 if lint could not check the file.
package main

import (
	"fmt"
	"io"
	"os"
	"slices"
)

// The exit statuses.
const (
	exitOK       = 0
	exitMistakes = 1
	exitUsage    = 2
)

const usage = `usage: reqlock lint --descriptor_set FILE [--source NAME]... [--in_code METHOD]... [--table]`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run runs a command line, and returns the exit status.
func run(args []string, out, problems io.Writer) int {
	switch {
	case len(args) == 0:
		fmt.Fprintln(problems, usage)
		return exitUsage
	case args[0] == "lint":
		return lint(args[1:], out, problems)
	case slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]):
		fmt.Fprintf(out, "%s\n\nreqlock lint -h describes the flags.\n", usage)
		return exitOK
	}
	fmt.Fprintf(problems, "reqlock: there is no command %q\n%s\n", args[0], usage)
	return exitUsage
}
