package mutant

import (
	"fmt"
	"regexp"
	"strings"
)

// Parse reads a mutant. Its errors name the line.
func Parse(name, text string) (Mutant, error) {
	p := mutantParser{mutant: Mutant{Name: name}}
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if err := p.read(line); err != nil {
			return Mutant{}, fmt.Errorf("mutant %s, line %d: %w", name, i+1, err)
		}
	}
	if err := p.end(); err != nil {
		return Mutant{}, fmt.Errorf("mutant %s: %w", name, err)
	}
	return p.mutant, nil
}

// A mutantParser reads a mutant line by line.
type mutantParser struct {
	mutant    Mutant
	described bool   // the first paragraph has ended
	file      string // of the next edits
	open      bool   // an edit has begun
}

// read reads the next line.
func (p *mutantParser) read(line string) error {
	file, begins := strings.CutPrefix(line, "--- ")
	field, value, named := strings.Cut(line, ": ")
	switch {
	case begins:
		p.file, p.open = file, false
		return p.closeEdit()
	case line == "@@":
		return p.openEdit()
	case p.open:
		return p.readEdit(line)
	case line == "":
		p.described = p.mutant.Description != ""
	case p.file != "":
		return fmt.Errorf("%q stands before any @@", line)
	case !p.described:
		p.mutant.Description = strings.TrimSpace(p.mutant.Description + " " + line)
	case named && field == "faults":
		p.mutant.Faults = value
		return isPattern(value)
	case named && field == "checks":
		p.mutant.Checks = value
		return isPattern(value)
	case named && field == "on":
		p.mutant.On = value
	default:
		return fmt.Errorf("%q is no field; there are faults, on and checks", line)
	}
	return nil
}

// isPattern returns an error if the text is no regular expression.
func isPattern(text string) error {
	_, err := regexp.Compile(text)
	return err
}

// openEdit begins an edit of the file.
func (p *mutantParser) openEdit() error {
	if p.file == "" {
		return fmt.Errorf("an edit without a file: --- and its path come first")
	}
	if err := p.closeEdit(); err != nil {
		return err
	}
	p.mutant.edits = append(p.mutant.edits, edit{file: p.file})
	p.open = true
	return nil
}

// readEdit adds a line to the last edit. An empty line ends the edit.
func (p *mutantParser) readEdit(line string) error {
	if line == "" {
		p.open = false
		return nil
	}
	last := &p.mutant.edits[len(p.mutant.edits)-1]
	text := line[1:] + "\n"
	switch line[0] {
	case ' ':
		last.from += text
		last.to += text
	case '-':
		last.from += text
	case '+':
		last.to += text
	default:
		return fmt.Errorf("%q begins neither with a space nor with - or +", line)
	}
	return nil
}

// closeEdit checks the last edit, if there is one.
func (p *mutantParser) closeEdit() error {
	n := len(p.mutant.edits)
	if n == 0 {
		return nil
	}
	last := p.mutant.edits[n-1]
	switch {
	case strings.TrimSpace(last.from) == "":
		return fmt.Errorf("an edit of %s has no lines that are there already", last.file)
	case last.from == last.to:
		return fmt.Errorf("an edit of %s changes nothing", last.file)
	}
	return nil
}

// end checks that the mutant is complete.
func (p *mutantParser) end() error {
	if err := p.closeEdit(); err != nil {
		return err
	}
	switch m := p.mutant; {
	case m.Description == "":
		return fmt.Errorf("it does not say what the mistake is")
	case m.Faults == "":
		return fmt.Errorf("it does not say which faults show it")
	case m.Checks == "":
		return fmt.Errorf("it does not say which checks find it")
	case m.On == "":
		return fmt.Errorf("it does not say on which deployment it shows")
	case len(m.edits) == 0:
		return fmt.Errorf("it changes nothing")
	}
	return nil
}
