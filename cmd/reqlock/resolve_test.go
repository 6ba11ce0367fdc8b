package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestResolveRefusesWrongArguments(t *testing.T) {
	t.Parallel()
	o := operator{url: "redis://127.0.0.1:1"} // no command is sent
	seen := strings.Repeat("a", 40)
	for _, test := range []struct{ args, want string }{
		{"resolve", "KEY is missing\nusage: reqlock resolve KEY not_done|done SEEN, or KEY answered SEEN STATUS BODY"},
		{"resolve KEY delete " + seen, "none of the forms"},
		{"resolve KEY done " + seen + " 201", "none of the forms"},
		{"resolve KEY", "the resolution, which is not_done, done or answered, is missing"},
		{"resolve KEY done", "SEEN is missing: reqlock outcomes show KEY prints it"},
		{"resolve KEY answered " + seen, "STATUS is missing"},
		{"resolve KEY answered " + seen + " 201", "BODY is missing"},
		{"resolve KEY answered " + seen + " created {}", "STATUS is no number"},
		{"resolve KEY answered " + seen + " 99 {}", "99"},
		{"resolve KEY answered " + seen + " 201 id:7", "the BODY is no JSON"},
		{"resolve KEY answered " + seen + " 201 id:7 --content-type application/problem+json", "the BODY is no JSON"},
		{"resolve KEY answered " + seen + " 201 @/no-such-file", "no-such-file"},
		{"resolve KEY answered " + seen + " 201 -", "the BODY is no JSON"},
		{"resolve KEY done 1234", "SEEN is not the 40 hex digits"},
	} {
		o.run(t, strings.Fields(test.args)...).want(t, exitUsage, test.want)
	}
}

// Redis may have only a digest of the key, and then only the key itself names the request.
func TestResolveByDigestAsksForTheKey(t *testing.T) {
	t.Parallel()
	_, rdb, o := start(t)
	must(newLocker(t, rdb).Begin(t.Context(), "half }", nil))(t)
	r := o.run(t, "resolve", digestOf("half }"), "done", strings.Repeat("a", 40)).want(t, exitError, "KEY")
	if strings.Contains(r.problems, "core.") {
		t.Errorf("an operator has no code to change: %s", r.problems)
	}
}

// An interrupt of resolve says in one line what may have happened.
func TestAnInterruptOfResolveIsOneLine(t *testing.T) {
	t.Parallel()
	r := interruptResolve(t)
	if strings.Count(r.problems, "\n") != 1 || r.out != "perhaps resolved k as done\n" {
		t.Errorf("it prints %s%s", r.out, r.problems)
	}
}

// The body of an answer is an argument, a file or the standard input.
func TestResolveReadsTheBody(t *testing.T) {
	t.Parallel()
	_, rdb, o := start(t)
	locks := newLocker(t, rdb)
	file := filepath.Join(t.TempDir(), "answer.json")
	if err := os.WriteFile(file, []byte(`{"id":7}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.input = `{"id":8}`
	for name, test := range map[string]struct {
		status, body string
		more         []string
		says         string
	}{
		"argument":     {"201", `[7]`, nil, "status 201, 3 bytes"},
		"file":         {"200", "@" + file, nil, "status 200, 9 bytes"},
		"input":        {"200", "-", nil, "status 200, 8 bytes"},
		"another type": {"200", "id:7", []string{"--content-type=text/plain"}, "status 200, 4 bytes"},
		"no body":      {"204", "", nil, "status 204, 0 bytes"},
	} {
		attempt := must(locks.Begin(t.Context(), name, nil))(t)
		if err := attempt.Unknown(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		seen := lines[recordView](t, o.run(t, "outcomes", "show", name, "--json"))[0].Seen
		args := append([]string{"resolve", name, "answered", seen, test.status, test.body, "--by=ada"}, test.more...)
		o.run(t, args...).want(t, exitOK, "resolved "+quoted(name)+" as answered, "+test.says+", by ada\n")
	}
}
