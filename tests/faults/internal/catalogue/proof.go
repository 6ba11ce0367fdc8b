package catalogue

import (
	"fmt"
	"strconv"
	"strings"
)

// A Proof is a test that shows a row.
type Proof struct {
	// Row is the number of the row.
	Row int
	// Kind is what kind of proof it is.
	Kind Kind
	// Note is what the author of the test says of it, or nothing.
	Note string
	// Test is the name of the function.
	Test string
	// File is where it is, relative to the repository, with slashes.
	File string
}

// Name returns the test with its package: tests/failover.TestAMasterIsReplaced.
func (p Proof) Name() string {
	folder, _ := cutLast(p.File, "/")
	return folder + "." + p.Test
}

// cutLast cuts a text at the last separator. Without one, all is after it.
func cutLast(s, separator string) (before, after string) {
	i := strings.LastIndex(s, separator)
	if i < 0 {
		return "", s
	}
	return s[:i], s[i+len(separator):]
}

// directive is how a directive begins.
const directive = "//faults:row"

// parse reads a comment. It returns a proof, without a test, for each row that a
// directive names, and none for other comments.
func parse(comment string) ([]Proof, error) {
	rest, ok := strings.CutPrefix(comment, directive)
	if !ok {
		return nil, nil
	}
	malformed := fmt.Errorf("%q is not like %q", comment, directive+" 8, 9 emulated: why")
	if !strings.HasPrefix(rest, " ") {
		return nil, malformed
	}
	head, note, noted := strings.Cut(rest, ":")
	note = strings.TrimSpace(note)
	if noted && note == "" {
		return nil, malformed
	}
	kind := Holds
	if before, last := cutLast(strings.TrimSpace(head), " "); before != "" {
		switch Kind(last) {
		case Emulated, Loss, Limit:
			head, kind = before, Kind(last)
		}
	}
	var proofs []Proof
	for number := range strings.SplitSeq(head, ",") {
		row, err := strconv.Atoi(strings.TrimSpace(number))
		if err != nil {
			return nil, malformed
		}
		proofs = append(proofs, Proof{Row: row, Kind: kind, Note: note})
	}
	return proofs, nil
}
