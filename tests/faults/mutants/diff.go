package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// load returns the mistakes of mutants/*.diff with matching names, sorted by name.
//
// The first paragraph of a file describes the mistake, and which locks have made it. The
// next one says what the campaign needs to find it. The rest is the change:
//
//	A release deletes the key without checking its token.
//
//	faults: ^server-stands-still$
//	on: server
//	checks: ^mutual-exclusion$
//
//	--- internal/redis/script/free.lua
//	@@
//	-if redis.call('GET', KEYS[1]) == ARGV[1] then
//	+if true then
//
// Each @@ begins an edit of whole lines, which must be in the file exactly once. Lines that
// begin with a space stay.
func load(t tree, names *regexp.Regexp) ([]mutant, error) {
	paths, err := filepath.Glob(filepath.Join(t.campaign, "mutants", "*.diff"))
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".diff")
		if !names.MatchString(name) {
			continue
		}
		text, err := os.ReadFile(path) //nolint:gosec // a mutant is our own
		if err != nil {
			return nil, err
		}
		m, err := parse(t.product, name, string(text))
		if err != nil {
			return nil, fmt.Errorf("mutant %s: %w", name, err)
		}
		all = append(all, m)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no mutant is called like %q", names)
	}
	return all, nil
}

// parse reads a mistake, and makes it in the files of the product.
func parse(product, name, text string) (m mutant, err error) {
	head, changes, _ := strings.Cut(text, "\n--- ")
	mistake, fields, _ := strings.Cut(head, "\n\n")
	m = mutant{name: name, mistake: strings.Join(strings.Fields(mistake), " "), files: make(map[string]string)}
	for line := range strings.SplitSeq(strings.TrimSpace(fields), "\n") {
		field, value, _ := strings.Cut(line, ": ")
		switch field {
		case "faults":
			m.faults = value
		case "on":
			m.on = value
		case "checks":
			m.checks = value
		case "":
		default:
			return m, fmt.Errorf("%q is no field", line)
		}
	}
	if m.mistake == "" || m.faults == "" || m.on == "" || m.checks == "" || changes == "" {
		return m, fmt.Errorf("it has no description, no faults, on or checks, or no change")
	}
	for change := range strings.SplitSeq(changes, "\n--- ") {
		file, edits, _ := strings.Cut(change, "\n")
		path := filepath.Join(product, filepath.FromSlash(file))
		if _, read := m.files[path]; !read {
			source, err := os.ReadFile(path) //nolint:gosec // a file of the product
			if err != nil {
				return m, err
			}
			m.files[path] = string(source)
		}
		before, edits, _ := strings.Cut("\n"+edits, "\n@@\n")
		if strings.TrimSpace(before) != "" || edits == "" {
			return m, fmt.Errorf("the change of %s does not begin with @@", file)
		}
		for edit := range strings.SplitSeq(edits, "\n@@\n") {
			if m.files[path], err = apply(m.files[path], edit); err != nil {
				return m, fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return m, nil
}

// apply makes an edit in a text.
func apply(text, edit string) (string, error) {
	var from, to strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(edit, "\n"), "\n") {
		mark, rest := line[:min(1, len(line))], line[min(1, len(line)):]+"\n"
		if mark == "" || strings.Trim(mark, " -+") != "" {
			return "", fmt.Errorf("%q begins neither with a space nor with - or +", line)
		}
		if mark != "+" {
			from.WriteString(rest)
		}
		if mark != "-" {
			to.WriteString(rest)
		}
	}
	// each line, the first one too, begins after a newline
	whole, old := "\n"+text, "\n"+from.String()
	switch {
	case strings.TrimSpace(old) == "" || from.String() == to.String():
		return "", fmt.Errorf("this edit quotes no line, or changes none:\n%s", edit)
	case strings.Index(whole, old) != strings.LastIndex(whole, old) || !strings.Contains(whole, old):
		return "", fmt.Errorf("the file does not have these lines exactly once:\n%s", from.String())
	}
	return strings.Replace(whole, old, "\n"+to.String(), 1)[1:], nil
}
