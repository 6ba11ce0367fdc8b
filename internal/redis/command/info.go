package command

import "strings"

// InfoFields returns the fields of a reply to INFO, by their names.
func InfoFields(reply string) map[string]string {
	fields := make(map[string]string)
	for line := range strings.Lines(reply) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}
