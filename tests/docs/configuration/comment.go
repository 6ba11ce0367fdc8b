package configuration

import (
	"fmt"
	"go/doc"
	"regexp"
	"strings"
)

var (
	// inSentence finds the default of an option, and its limits, in the first sentence.
	inSentence = regexp.MustCompile(`^([^:]+): (.+?) if not set(?:, (.+))?\.$`)
	// inNext finds a default in a sentence of its own.
	inNext = regexp.MustCompile(`It is (\S+) if not set\b|If not set, ([^.]+)\.|The default (?:is|stores) ([^.]+)\.`)
	// limits finds limits in a sentence of their own.
	limits = regexp.MustCompile(`\. (It is at least [^.]+\.)`)

	// onlyRoot finds the functions that accept an option, if With does not.
	onlyRoot = regexp.MustCompile(`\bOnly (\w+)(?: and (\w+))? accepts? this option\.`)
	// refusedBy finds the only function that refuses an option.
	refusedBy = regexp.MustCompile(`\b(\w+) refuses this option\.`)
	// onlyOf finds the only function of an adapter that accepts an option.
	onlyOf = regexp.MustCompile(`\bis an option (?:only for|of) (\w+)[.;]`)
)

// parse returns the option that a comment on one line describes.
func parse(name, comment string) (Option, error) {
	first := new(doc.Package).Synopsis(comment)
	rest := strings.TrimPrefix(comment, first)
	o := Option{Name: name, Where: where(comment)}
	if found := inSentence.FindStringSubmatch(first); found != nil {
		first, o.Default = found[1]+".", found[2]
		if found[3] != "" {
			first += " " + capitalized(found[3]) + "."
		}
	} else if found := inNext.FindStringSubmatch(rest); found != nil {
		o.Default = found[1] + found[2] + found[3] // two of the three are empty
		if limit := limits.FindStringSubmatch(". " + strings.TrimSpace(rest)); limit != nil {
			first += " " + capitalized(strings.TrimPrefix(limit[1], "It is "))
		}
	} else if strings.HasPrefix(name, "With") && !strings.HasPrefix(name, "Without") {
		return o, fmt.Errorf("the comment of %s does not say its default: see the package configuration", name)
	}
	meaning, ok := strings.CutPrefix(first, name+" ")
	if !ok {
		return o, fmt.Errorf("the comment of %s does not begin with its name", name)
	}
	o.Meaning = capitalized(strings.TrimPrefix(meaning, "sets "))
	return o, nil
}

// everywhere is where an option is allowed that its comment does not limit.
const everywhere = "everywhere"

// where returns where an option is allowed.
func where(comment string) string {
	if found := onlyRoot.FindStringSubmatch(comment); found != nil {
		if found[2] != "" {
			return "`" + found[1] + "`, `" + found[2] + "`"
		}
		return "`" + found[1] + "`"
	}
	if found := onlyOf.FindStringSubmatch(comment); found != nil {
		return "`" + found[1] + "`"
	}
	if found := refusedBy.FindStringSubmatch(comment); found != nil {
		return "everywhere except `" + found[1] + "`"
	}
	return everywhere
}

func capitalized(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
