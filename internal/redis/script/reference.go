package script

import "strings"

// referenceTag is how many digits of the name of its attempt begin the field r of a record.
const referenceTag = 8

// ReferenceIn returns the reference in a record with these fields t and r, or "", as firstOf of state.lua does.
func ReferenceIn(t, r string) string {
	name, isResolved := strings.CutPrefix(t, "resolved:")
	if !isResolved {
		name = Digest(t)
	}
	if len(r) < referenceTag || len(name) < referenceTag || r[:referenceTag] != name[:referenceTag] {
		return ""
	}
	return r[referenceTag:]
}
