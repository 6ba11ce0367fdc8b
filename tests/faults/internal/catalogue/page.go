package catalogue

import (
	"fmt"
	"strings"
)

// Page returns a README with new text between its markers: the rows with their tests, the
// guards of rows that do not simply hold, and the mutants. The part rows begins with <!--
// rows --> and ends with <!-- /rows -->.
func Page(readme string, groups []Group, proofs []Proof, mutants []Mutant) (string, error) {
	for _, part := range []struct{ name, text string }{
		{"rows", table(groups, proofs)},
		{"guards", guards(groups)},
		{"mutants", mutantList(mutants)},
	} {
		begin, end := "<!-- "+part.name+" -->\n", "<!-- /"+part.name+" -->"
		before, rest, begun := strings.Cut(readme, begin)
		_, after, ended := strings.Cut(rest, end)
		if !begun || !ended {
			return "", fmt.Errorf("the page lacks %s or %s", strings.TrimSpace(begin), end)
		}
		readme = before + begin + part.text + end + after
	}
	return readme, nil
}

// table returns one Markdown table for each group.
func table(groups []Group, proofs []Proof) string {
	var b strings.Builder
	for _, group := range groups {
		fmt.Fprintf(&b, "\n### %s. %s\n\n| | what happens | what is right | | shown by |\n|---|---|---|---|---|\n", group.Letter, group.Title)
		for _, row := range group.Rows {
			var tests []string
			for _, proof := range ofRow(proofs, row.Number) {
				tests = append(tests, link(proof))
			}
			fmt.Fprintf(&b, "| %d | %s | %s | %s | %s |\n",
				row.Number, cell(row.Trigger), cell(row.Right), row.kind().description(), strings.Join(tests, "<br>"))
		}
	}
	b.WriteByte('\n')
	return b.String()
}

// link returns a link to a proof, relative to the folder of the page.
func link(p Proof) string {
	text := fmt.Sprintf("[%s](../../%s)", p.Name(), p.File)
	if p.Note == "" {
		return text
	}
	return text + ": " + cell(p.Note)
}

// guards returns the rows that do not simply hold, with what protects the user.
func guards(groups []Group) string {
	var b strings.Builder
	b.WriteByte('\n')
	for _, row := range rowsOf(groups) {
		if row.kind() != Holds {
			fmt.Fprintf(&b, "- **%d, %s.** %s *%s*\n", row.Number, row.kind().description(), row.Trigger, row.Guard)
		}
	}
	b.WriteByte('\n')
	return b.String()
}

// cell escapes a text for a cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(text, "|", `\|`)
}
