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
	// Kind is the kind of the proof.
	Kind Kind
	// Note is the note of the directive, or "".
	Note string
	// Test is the name of the test function.
	Test string
	// File is its path in the repository, with slashes.
	File string
}

// Name returns the test with its package, such as tests/failover.TestAMasterIsReplaced.
func (p Proof) Name() string {
	folder, _ := cutLast(p.File, "/")
	return folder + "." + p.Test
}

// cutLast cuts a text at the last separator. Without a separator, all text is after it.
func cutLast(s, separator string) (before, after string) {
	i := strings.LastIndex(s, separator)
	if i < 0 {
		return "", s
	}
	return s[:i], s[i+len(separator):]
}

// directive is the prefix of a directive.
const directive = "//faults:row"

// parse reads a comment. It returns a proof without a test for each row that a directive
// names. Other comments have none.
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
