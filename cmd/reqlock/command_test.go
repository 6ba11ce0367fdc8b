package main

import (
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
)

func TestCommandLines(t *testing.T) {
	t.Parallel()
	_, rdb, o := start(t)
	locks := newLocker(t, rdb)
	must(locks.Lock(t.Context(), "-k"))(t)
	endpointKey := must(core.EndpointKey("POST", "/payments", "16"))(t) // begins with "-"
	must(locks.Begin(t.Context(), endpointKey, nil))(t)
	without := operator{}
	for _, test := range []struct {
		o      operator
		args   []string
		status int
		says   string // in the output, or in the standard error of a failure
	}{
		{o, nil, exitUsage, "reqlock: the command is missing\nusage: reqlock COMMAND"},
		{o, []string{"check"}, exitUsage, `there is no command "check"`},
		{o, []string{"outcomes", "odd"}, exitUsage, `there is no command "outcomes odd"`},
		{o, []string{"--prefix", "p:", "ls"}, exitUsage, "flags stand after the command"},
		{o, []string{"ls", "more"}, exitUsage, `reqlock: ls: "more" is one argument too many` + "\nusage: reqlock ls [FLAG]...\n"},
		{o, []string{"show"}, exitUsage, "KEY is missing\nusage: reqlock show KEY [FLAG]...\n"},
		{o, []string{"ls", "--waiting", "many"}, exitUsage, `invalid value "many" for flag -waiting`},
		{o, []string{"ls", "--limit", "0"}, exitUsage, "WithLimit: 0 is not between 1 and 1000000"},
		{o, []string{"ls", "--retention", "-1s"}, exitUsage, "WithRetention"},
		{o, []string{"ls", "--timeout", "0"}, exitUsage, "--timeout is not positive"},
		{o, []string{"ls", "--prefix", "{"}, exitUsage, "WithPrefix"},
		{o, []string{"outcomes", "--state", "odd"}, exitUsage, `"odd" is no --state`},
		{o, []string{"processes", "g"}, exitUsage, "the id is not"},
		{o, []string{"ls", "--process", "pod-7"}, exitUsage, "--process: the id is not"},
		{o, []string{"watch", "--process", "pod-7"}, exitUsage, "--process: the id is not"},
		{o, []string{"outcomes", "--process", "pod-7"}, exitUsage, "--process: the id is not"},
		{o, []string{"ls", "--sort", "age"}, exitUsage, `"age" is no --sort`},
		{o, []string{"outcomes", "show"}, exitUsage, "KEY is missing"},
		{o, []string{"outcomes", "show", "a", "b"}, exitUsage, `"b" is one argument too many`},
		{o, []string{"outcomes", "show", "--route", "POST /p"}, exitUsage, "PART is missing"},
		{o, []string{"outcomes", "show", "--route", "/p", "a"}, exitUsage, "the method is empty"},
		{o, []string{"help", "resolve"}, exitOK, "  not_done   the request has taken no effect"},
		{o, []string{"processes", "0123"}, exitNotFound, "silent"},
		{without, []string{"ls"}, exitUsage, "there is no Redis: set REDIS_URL or --url"},
		{without, []string{"ls", "--url", o.url}, exitOK, `-k`},
		{operator{url: "redis://127.0.0.1:1"}, []string{"ls", "--url", o.url}, exitOK, `-k`},
		{operator{url: "redis://127.0.0.1:1"}, []string{"ls"}, exitError, "reqlock: ls: redis unavailable: dial tcp"},
		{o, []string{"show", "--json", "--", "-k"}, exitOK, `{"key":"-k",`},
		{o, []string{"show", "--", "-k", "--json"}, exitUsage, `"--json" is one argument too many`},
		{o, []string{"show", "k", "--", "-k"}, exitUsage, `"-k" is one argument too many`},
		{o, []string{"show", "-k"}, exitUsage, "flag provided but not defined: -k"},
		{o, []string{"show", endpointKey, "--json"}, exitOK, `{"key":"i:` + endpointKey},
		{o, []string{"outcomes", "show", "--json", endpointKey, "--limit=1"}, exitOK, `{"endpoint_key":"` + endpointKey},
		{o, []string{"show", endpointKey[:42]}, exitUsage, "flag provided but not defined"},
		{o, []string{"show", "--", endpointKey, "--json"}, exitUsage, `"--json" is one argument too many`},
		{o, []string{"help"}, exitOK, "  outcomes show  "},
		{o, []string{"-h"}, exitOK, "  outcomes show  "},
		{o, []string{"help", "outcomes", "show"}, exitOK, "usage: reqlock outcomes show KEY, or --method METHOD --route ROUTE PART... [FLAG]..."},
		{o, []string{"help", "free"}, exitOK, "  --by WHO "},
		{o, []string{"free", "--help"}, exitOK, "  --by WHO "},
		{o, []string{"help", "odd"}, exitUsage, `there is no command "odd"`},
		{o, []string{"help", "ls", "odd"}, exitUsage, `there is no command "ls odd"`},
		{o, []string{"version"}, exitOK, "reqlock "},
		{o, []string{"--version"}, exitOK, " go1."},
	} {
		r := test.o.run(t, test.args...)
		says := r.problems
		if test.status == exitOK {
			says = r.out
		}
		if r.status != test.status || !strings.Contains(says, test.says) || (test.status != exitOK && r.out != "") {
			t.Errorf("%q: status %d\nout: %s\nproblems: %s", test.args, r.status, r.out, r.problems)
		}
	}
}

// A script may pass the same flags to all commands. Help and completion have those that act.
func TestHelpHasOnlyFlagsThatAct(t *testing.T) {
	t.Parallel()
	_, _, o := start(t)
	flags := []string{"--limit", "--retention", "--digest"}
	for name, acts := range map[string]string{"ls": "--limit --digest", "processes": "--limit", "outcomes show": "--retention --digest", "free": "--digest", "key": "", "lint": ""} {
		r := operator{}.run(t, append([]string{"help"}, strings.Fields(name)...)...).want(t, exitOK)
		for _, f := range flags {
			if strings.Contains(r.out, f+" ") != strings.Contains(acts, f) {
				t.Errorf("help %s, %s:\n%s", name, f, r.out)
			}
		}
	}
	o.run(t, "processes", "--retention", "1h", "--digest").want(t, exitOK)
	o.run(t, "free", "k", "--limit", "1").want(t, exitNotFound)
	script := operator{}.run(t, "completion", "bash").out
	if !strings.Contains(script, "*:processes) words='--json --limit --prefix --timeout --url'") {
		t.Error(script)
	}
}

// The process has the streams and the statuses of a run.
func TestTheProcessExitsWithTheStatus(t *testing.T) {
	t.Parallel()
	if status, out, problems := runChild(t, "help"); status != exitOK || !strings.HasPrefix(out, "usage: ") || problems != "" {
		t.Errorf("status %d\n%s%s", status, out, problems)
	}
	if status, out, problems := runChild(t, "ls", "--url", "redis://127.0.0.1:1"); status != exitError || out != "" || strings.Count(problems, "\n") != 1 {
		t.Errorf("status %d\n%s%s", status, out, problems)
	}
}

// An operator with the rights to read of docs/inspect.md can run all commands that read.
func TestReadingNeedsTheRightsToRead(t *testing.T) {
	t.Parallel()
	server, rdb, _ := start(t)
	o := reader(t, server)
	locks := newLocker(t, rdb)
	lease := must(locks.Lock(t.Context(), "k"))(t)
	must(locks.Begin(t.Context(), "pay", nil))(t)
	register(t, rdb, processOf(lease), lockView{})
	for _, args := range []string{"ls", "ls --waiting 1", "ls --process " + processOf(lease), "show k", "show pay", "processes", "processes " + processOf(lease), "processes " + processOf(lease)[:4], "outcomes", "outcomes show pay"} {
		o.run(t, strings.Fields(args)...).want(t, exitOK)
	}
	o.run(t, "processes", processOf(lease)).want(t, exitOK, "account", "bank/wait.go:7", `"pod-2\x1b[31m"`)
}
