package main

import (
	"flag"
	"fmt"
	"io"
	"regexp"
	"slices"
	"text/tabwriter"
	"time"
)

// A flagGroup says which flags of all commands one command has.
type flagGroup int

const (
	noFlags  flagGroup = 0
	keyFlags flagGroup = 1 << iota
	redisFlags
	// Each command with redisFlags accepts these as well, so that a script may pass the same flags to all. Only a
	// command that has them in its group uses them.
	limitFlag
	retentionFlag
	digestFlag
)

// acts reports whether a command with the group uses the flag.
func (g flagGroup) acts(name string) bool {
	group, isShared := map[string]flagGroup{"limit": limitFlag, "retention": retentionFlag, "digest": digestFlag}[name]
	return !isShared || g&group != 0
}

// options are the flags that many commands have.
type options struct {
	url, prefix        string
	retention, timeout time.Duration
	limit              int
	json, digest       bool
}

// The defaults of the options.
const (
	defaultRetention = 24 * time.Hour
	defaultTimeout   = 30 * time.Second
	defaultLimit     = 10_000
)

// add adds the flags of a group.
func (o *options) add(f *flag.FlagSet, group flagGroup) {
	if group == noFlags {
		return
	}
	f.BoolVar(&o.json, "json", false, "print one JSON object on each line, with times in ms")
	f.StringVar(&o.prefix, "prefix", "reqlock:", "the core.WithPrefix `PREFIX` of the service")
	if group&redisFlags == 0 {
		return
	}
	f.StringVar(&o.url, "url", "", "the `URL` of Redis, as in reqlock help; REDIS_URL if not set, which other users of the machine cannot see")
	f.DurationVar(&o.retention, "retention", defaultRetention, "the core.WithRetention `TIME` of the service")
	f.DurationVar(&o.timeout, "timeout", defaultTimeout, "how long Redis may take, as a `TIME`")
	f.IntVar(&o.limit, "limit", defaultLimit, "list at most `N`")
	f.BoolVar(&o.digest, "digest", false, "print the digests of keys, as in the log, instead of keys")
}

// dashedKey matches an endpoint key that looks like a flag. No flag has a name of this length.
var dashedKey = regexp.MustCompile(`^-[0-9A-Za-z_-]{42}$`)

// parse reads flags, which stand before, between or after the arguments. It returns the arguments. All
// after -- are arguments.
func parse(f *flag.FlagSet, args []string) (rest []string, err error) {
	at := slices.IndexFunc(args, func(arg string) bool { return arg == "--" || dashedKey.MatchString(arg) })
	if at >= 0 && args[at] != "--" {
		before, err := parse(f, args[:at])
		if err != nil {
			return nil, err
		}
		after, err := parse(f, args[at+1:])
		return slices.Concat(before, args[at:at+1], after), err
	}
	for len(args) > 0 {
		if err := f.Parse(args); err != nil {
			return nil, err
		}
		read := len(args) - f.NArg()
		if read > 0 && args[read-1] == "--" {
			return append(rest, f.Args()...), nil
		}
		if args = f.Args(); len(args) > 0 {
			rest, args = append(rest, args[0]), args[1:]
		}
	}
	return rest, nil
}

// appendTo returns the function of a flag that may be repeated.
func appendTo(values *[]string) func(string) error {
	return func(value string) error {
		*values = append(*values, value)
		return nil
	}
}

// describe prints the help of the command.
func (cmd *command) describe(out io.Writer) {
	fmt.Fprintf(out, "%s\n\n%s\n", cmd.usage(), cmd.about)
	if cmd.more != "" {
		fmt.Fprintf(out, "\n%s\n", cmd.more)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	flags, _ := cmd.flags(&call{})
	isFirst := true
	flags.VisitAll(func(f *flag.Flag) {
		if !cmd.group.acts(f.Name) {
			return
		}
		if isFirst {
			fmt.Fprintln(w)
		}
		isFirst = false
		value, text := flag.UnquoteUsage(f)
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" {
			text += " (" + f.DefValue + " if not set)"
		}
		fmt.Fprintf(w, "  --%s %s\t%s\n", f.Name, value, text)
	})
	_ = w.Flush()
}
