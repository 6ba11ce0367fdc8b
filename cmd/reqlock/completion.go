package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// completion prints the completion of a shell.
func completion(_ context.Context, c *call) error {
	shells := map[string]func(io.Writer, []completed){"bash": bash, "zsh": zsh, "fish": fish}
	write, ok := shells[c.args[0]]
	if !ok {
		return misuse("%q is none of bash, zsh and fish", c.args[0])
	}
	write(c.out, completions())
	return nil
}

// A completed is a first word of the command line, with the words that may follow.
type completed struct {
	word, about string
	then        []string // flags and fixed arguments
}

// completions returns all first words.
func completions() (all []completed) {
	for _, cmd := range commands() {
		word, second, _ := strings.Cut(cmd.name, " ")
		i := slices.IndexFunc(all, func(c completed) bool { return c.word == word })
		if i < 0 {
			i, all = len(all), append(all, completed{word: word, about: cmd.about})
		}
		add := strings.Fields(second)
		flags, _ := cmd.flags(&call{})
		flags.VisitAll(func(f *flag.Flag) {
			if cmd.group.acts(f.Name) {
				add = append(add, "--"+f.Name)
			}
		})
		switch word {
		case "resolve":
			add = append(add, "not_done", "done", "answered")
		case "completion":
			add = append(add, "bash", "zsh", "fish")
		case "help":
			for _, cmd := range commands() {
				add = append(add, strings.Fields(cmd.name)...)
			}
		}
		for _, next := range add {
			if !slices.Contains(all[i].then, next) {
				all[i].then = append(all[i].then, next)
			}
		}
	}
	return all
}

// firsts returns the first words.
func firsts(all []completed) (words []string) {
	for _, c := range all {
		words = append(words, c.word)
	}
	return words
}

func bash(out io.Writer, all []completed) {
	fmt.Fprintln(out, "# To load it: source <(reqlock completion bash)\n_reqlock() {\n\tlocal words\n\tcase \"$COMP_CWORD:${COMP_WORDS[1]}\" in")
	fmt.Fprintf(out, "\t1:*) words='%s' ;;\n", strings.Join(firsts(all), " "))
	for _, c := range all {
		fmt.Fprintf(out, "\t*:%s) words='%s' ;;\n", c.word, strings.Join(c.then, " "))
	}
	fmt.Fprintln(out, "\tesac\n\tCOMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n}\ncomplete -F _reqlock reqlock")
}

func zsh(out io.Writer, all []completed) {
	fmt.Fprintln(out, "#compdef reqlock\n# To load it: source <(reqlock completion zsh)\n_reqlock() {\n\tif (( CURRENT == 2 )); then\n\t\tlocal -a commands=(")
	for _, c := range all {
		fmt.Fprintf(out, "\t\t\t'%s:%s'\n", c.word, strings.ReplaceAll(c.about, ":", `\:`))
	}
	fmt.Fprintln(out, "\t\t)\n\t\t_describe command commands\n\t\treturn\n\tfi\n\tcase ${words[2]} in")
	for _, c := range all {
		if len(c.then) > 0 {
			fmt.Fprintf(out, "\t%s) compadd -- %s ;;\n", c.word, strings.Join(c.then, " "))
		}
	}
	fmt.Fprintln(out, "\tesac\n}\ncompdef _reqlock reqlock")
}

func fish(out io.Writer, all []completed) {
	fmt.Fprintln(out, "# To load it: reqlock completion fish | source\ncomplete -c reqlock -f")
	for _, c := range all {
		fmt.Fprintf(out, "complete -c reqlock -n __fish_use_subcommand -a %s -d '%s'\n", c.word, c.about)
		var arguments []string
		for _, next := range c.then {
			if name, isFlag := strings.CutPrefix(next, "--"); isFlag {
				fmt.Fprintf(out, "complete -c reqlock -n '__fish_seen_subcommand_from %s' -l %s\n", c.word, name)
			} else {
				arguments = append(arguments, next)
			}
		}
		if len(arguments) > 0 {
			fmt.Fprintf(out, "complete -c reqlock -n '__fish_seen_subcommand_from %s' -a '%s'\n", c.word, strings.Join(arguments, " "))
		}
	}
}
