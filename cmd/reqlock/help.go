package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"text/tabwriter"
)

// howTo is the end of the help of all commands.
const howTo = `
Redis is --url or REDIS_URL. Escape special characters of a password, as in %40 for @.
  redis://[USER:PASSWORD@]HOST:6379/0   one server; rediss:// with TLS
  redis+cluster://[USER:PASSWORD@]HOST:6379?addr=HOST2:6379
                                        a cluster; rediss+cluster:// with TLS
  redis+sentinel://HOST:26379/0?master_name=NAME&addr=HOST2:26379&username=USER&password=PASSWORD
                                        Sentinel, whose own user stands before HOST; rediss+sentinel:// with TLS
go-redis has more parameters, such as dial_timeout=2s. redis:// with master_name or addr is as above.

KEY is the key, its digest in the log, the endpoint_key of a request, or a name in Redis.
NO_COLOR=1 prints no terminal escapes.

Exit status: 0 done, 1 error, 2 wrong command line, 3 not found, 4 changed meanwhile: nothing was done.
`

// The help of single commands.
const (
	resolveHelp = `It changes nothing unless the outcome is that of SEEN, which reqlock outcomes show prints.
  not_done   the request has taken no effect: the next copy runs
  done       it has taken effect: copies are refused
  answered   it has taken effect: copies get this answer. BODY is the body itself, @FILE, or - for the standard input`
	freeHelp = `The holder's context is cancelled, and the next one runs when the lease would have ended. A handler that ignores
its context still runs. Use --lease to end no other lease than the one that show has printed.`
	doctorHelp = `It takes and releases one lock of its own, and so needs the rights of the service.`
)

// help describes one command or lists all.
func help(_ context.Context, c *call) error {
	if len(c.args) > 0 {
		cmd, rest, err := find(c.args)
		if err == nil && len(rest) > 0 {
			err = misuse("there is no command %q", strings.Join(c.args, " "))
		}
		if err != nil {
			return err
		}
		cmd.describe(c.out)
		return nil
	}
	fmt.Fprint(c.out, "usage: reqlock COMMAND [FLAG]... [ARGUMENT]...\n\n")
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	for _, cmd := range commands() {
		fmt.Fprintf(w, "  %s\t%s\n", cmd.name, cmd.about)
	}
	_ = w.Flush()
	fmt.Fprint(c.out, howTo)
	return nil
}

// version prints the version of the program.
func version(_ context.Context, c *call) error {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return errors.New("the program was built without its version")
	}
	revision := ""
	for _, setting := range build.Settings {
		if setting.Key == "vcs.revision" {
			revision = " " + setting.Value
		}
	}
	fmt.Fprintf(c.out, "reqlock %s%s %s\n", build.Main.Version, revision, build.GoVersion)
	return nil
}
