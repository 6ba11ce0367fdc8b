package campaign

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// defaultOut is the default directory for failures.
const defaultOut = "out"

// seeds returns the seeds of the runs by name, in order.
func (s *Settings) seeds() []uint64 {
	seeds := slices.Repeat([]uint64{s.Seed}, s.Count)
	for i := range seeds {
		if !s.Seeded {
			seeds[i] += uint64(i)
		}
	}
	return seeds
}

// announce describes the runs that follow, and how to choose the same ones again.
func (s *Settings) announce(runs int) string {
	many := "1 run"
	if runs > 1 {
		many = fmt.Sprintf("%d runs", runs)
	}
	switch {
	case s.Mode == Short:
		return fmt.Sprintf("seed %d: the short plan, %s", s.Seed, many)
	case s.Mode == Long:
		return fmt.Sprintf("seed %d: the long plan, rounds of %s for %v, those after the first with seeds of their own", s.Seed, many, s.For)
	case s.Count > 1 && s.Seeded:
		return fmt.Sprintf("seed %d: %s by name, all with this seed", s.Seed, many)
	case s.Count > 1:
		return fmt.Sprintf("seed %d and those after it: %s by name", s.Seed, many)
	default:
		return fmt.Sprintf("seed %d: %s by name", s.Seed, many)
	}
}

// command returns the command that starts the same plan again.
func (s *Settings) command() string {
	plan := "-short"
	if s.Mode == Long {
		plan = "-long"
	}
	return commandLine(plan, "-seed", strconv.FormatUint(s.Seed, 10), "-out", s.Out)
}

// commandLine returns the command line of the program with arguments, for a shell. It omits
// an -out at the end that is the default.
func commandLine(args ...string) string {
	if n := len(args); n > 1 && args[n-2] == "-out" && args[n-1] == defaultOut {
		args = args[:n-2]
	}
	line := []string{"go run ."}
	for _, arg := range args {
		line = append(line, quote(arg))
	}
	return strings.Join(line, " ")
}

// quote returns the argument for a shell. It adds quotes only if a character has a meaning
// in a shell.
func quote(word string) string {
	meant := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./,:@%+=", r)
	}
	if word != "" && !strings.ContainsFunc(word, meant) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
