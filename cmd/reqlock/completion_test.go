package main

import (
	"os/exec"
	"strings"
	"testing"
)

// Each shell that is installed reads its script, and bash completes.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for shell, check := range map[string][]string{"bash": {"-n"}, "zsh": {"-n"}, "fish": {"--no-execute"}} {
		script := operator{}.run(t, "completion", shell).want(t, exitOK, "outcomes", "not_done").out
		if strings.Count(script, "'")%2 != 0 {
			t.Errorf("the quotes of %s:\n%s", shell, script)
		}
		program, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		read := exec.CommandContext(t.Context(), program, check...)
		read.Stdin = strings.NewReader(script)
		if out, err := read.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", shell, err, out)
		}
		if shell != "bash" {
			continue
		}
		for line, want := range map[string]string{"reqlock out": "outcomes", "reqlock resolve KEY not": "not_done", "reqlock free KEY --no": "--now", "reqlock outcomes l": "ls", "reqlock x ": ""} {
			words := strings.Split(line, " ")
			do := script + "COMP_WORDS=(" + line + " ''); COMP_CWORD=" + string(rune('0'+len(words)-1)) + "; _reqlock; echo ${COMPREPLY[*]}"
			out, err := exec.CommandContext(t.Context(), program, "-c", do).Output()
			if got := strings.TrimSpace(string(out)); err != nil || got != want {
				t.Errorf("%q: %q, want %q, %v", line, got, want, err)
			}
		}
	}
	operator{}.run(t, "completion", "csh").want(t, exitUsage, "none of bash, zsh and fish")
}
