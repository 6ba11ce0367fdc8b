package main

import (
	"strings"
	"testing"
)

func TestResolveRefusesWrongArguments(t *testing.T) {
	t.Parallel()
	o := operator{url: "redis://127.0.0.1:1"} // no command is sent
	seen := strings.Repeat("a", 40)
	for _, test := range []struct{ args, want string }{
		{"resolve", "an argument is missing\nusage: reqlock resolve KEY not_done|done SEEN, or KEY answered SEEN STATUS BODY"},
		{"resolve KEY delete " + seen, "none of the forms"},
		{"resolve KEY done " + seen + " 201", "none of the forms"},
		{"resolve KEY answered " + seen + " 201", "none of the forms"},
		{"resolve KEY answered " + seen + " created {}", "STATUS is no number"},
		{"resolve KEY answered " + seen + " 99 {}", "99"},
		{"resolve KEY done 1234", "SEEN is not the 40 hex digits"},
	} {
		o.run(t, strings.Fields(test.args)...).want(t, exitUsage, test.want)
	}
}
