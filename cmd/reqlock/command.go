package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"slices"
	"strings"

	"github.com/reqlock/reqlock/core"
)

// A command is one of the commands of the program.
type command struct {
	// name is one word, or two for a part of another command.
	name string
	// args are the arguments, as help shows them, and about says what the command does.
	args, about string
	// arguments are how many arguments there are, at least and at most.
	arguments [2]int
	// group says which flags of all commands it has.
	group flagGroup
	// begin adds the flags of the command alone, and returns what runs it.
	begin func(f *flag.FlagSet) action
	// more are lines of its help alone.
	more string
}

// An action runs a command whose flags were read.
type action func(ctx context.Context, c *call) error

// A call is one run of a command.
type call struct {
	session
	options

	args   []string
	change *core.Event // what an operator has changed; nil: nothing
}

// commands returns all commands, in the order of help.
func commands() []*command {
	return []*command{
		{"ls", "", "list the locks that are held", [2]int{}, redisFlags | limitFlag | digestFlag, beginLs, ""},
		{"show", "KEY", "show a lock or the record of a request: holders, waiters, since when and where in the code", [2]int{1, 1}, redisFlags | retentionFlag | digestFlag, simply(show), ""},
		{"watch", "", "repeat ls", [2]int{}, redisFlags | limitFlag | digestFlag, beginWatch, ""},
		{"processes", "[ID]", "list the processes that have core.WithInstance, or show one", [2]int{0, 1}, redisFlags | limitFlag, simply(processes), ""},
		{"outcomes ls", "", "list the idempotent requests with an unknown outcome, the oldest one first", [2]int{}, redisFlags | limitFlag | retentionFlag | digestFlag, beginOutcomes, ""},
		{"outcomes show", "KEY, or --method METHOD --route ROUTE PART...", "show what became of an idempotent request", [2]int{0, -1}, redisFlags | retentionFlag | digestFlag, beginShowOutcome, ""},
		{"resolve", "KEY not_done|done SEEN, or KEY answered SEEN STATUS BODY", "end an unknown outcome", [2]int{0, 5}, redisFlags | retentionFlag | digestFlag, beginResolve, resolveHelp},
		{"free", "KEY", "end the lease of a lock, without an overlap of two holders", [2]int{1, 1}, redisFlags | digestFlag, beginFree, freeHelp},
		{"key", "--method METHOD --route ROUTE PART...", "print the key of a request from what its client sent", [2]int{1, -1}, keyFlags, beginKey, ""},
		{"doctor", "", "check Redis, the rights of this user, and what an operator should look at", [2]int{}, redisFlags | limitFlag | digestFlag, simply(doctor), doctorHelp},
		{"lint", "--descriptor_set FILE", "check the annotations of .proto files", [2]int{}, noFlags, beginLint, ""},
		{"completion", "bash|zsh|fish", "print the completion of a shell", [2]int{1, 1}, noFlags, simply(completion), ""},
		{"version", "", "print the version", [2]int{}, noFlags, simply(version), ""},
		{"help", "[COMMAND]", "describe a command", [2]int{0, 2}, noFlags, simply(help), ""},
	}
}

// simply returns the begin of a command without flags of its own.
func simply(do action) func(*flag.FlagSet) action { return func(*flag.FlagSet) action { return do } }

// usage is the line about all commands.
const usage = "usage: reqlock COMMAND [FLAG]... [ARGUMENT]..., and reqlock help lists the commands"

// usage returns the line about the command.
func (cmd *command) usage() string {
	return strings.TrimSpace("usage: reqlock "+cmd.name+" "+cmd.args) + " [FLAG]..."
}

// find returns the command that the arguments begin with, and the other arguments.
func find(args []string) (*command, []string, error) {
	if len(args) == 0 {
		return nil, nil, misuse("the command is missing")
	}
	switch args[0] {
	case "-h", "-help", "--help":
		args = []string{"help"}
	case "--version":
		args = []string{"version"}
	case "outcomes":
		if len(args) == 1 || strings.HasPrefix(args[1], "-") {
			args = slices.Insert(slices.Clone(args), 1, "ls")
		}
	}
	if strings.HasPrefix(args[0], "-") {
		return nil, nil, misuse("flags stand after the command")
	}
	for _, cmd := range commands() {
		words := strings.Fields(cmd.name)
		if len(args) >= len(words) && slices.Equal(args[:len(words)], words) {
			return cmd, args[len(words):], nil
		}
	}
	name := args[0]
	if name == "outcomes" {
		name += " " + args[1]
	}
	return nil, nil, misuse("there is no command %q", name)
}

// dispatch runs the command of the arguments.
func dispatch(ctx context.Context, args []string, s session) error {
	cmd, args, err := find(args)
	if err != nil {
		return &failure{nil, err}
	}
	c := &call{session: s}
	flags, do := cmd.flags(c)
	c.args, err = parse(flags, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		cmd.describe(s.out)
		return nil
	case err != nil:
		return &failure{cmd, misuse("%v", err)}
	case len(c.args) < cmd.arguments[0]:
		words := strings.Fields(cmd.args)
		return &failure{cmd, misuse("%s is missing", strings.TrimSuffix(words[len(words)-1], "..."))}
	case cmd.arguments[1] >= 0 && len(c.args) > cmd.arguments[1]:
		return &failure{cmd, misuse("%q is one argument too many", c.args[cmd.arguments[1]])}
	}
	if err := do(ctx, c); err != nil {
		return &failure{cmd, interrupted(err, c)}
	}
	return nil
}

// flags returns the flags of the command for a call, and what runs the command.
func (cmd *command) flags(c *call) (*flag.FlagSet, action) {
	flags := flag.NewFlagSet("reqlock "+cmd.name, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // report prints the error
	do := cmd.begin(flags)
	c.add(flags, cmd.group)
	return flags, do
}
