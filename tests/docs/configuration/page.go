package configuration

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// File is the path of the page in the repository.
const File = "docs/configuration.md"

// frame is the page with a line for each table.
//
//go:embed configuration.md.txt
var frame string

// A table is the place of a table in the frame.
type table struct {
	line     string   // a line of the frame
	packages []string // whose options are alike
	takes    func(Option) bool
}

// tables returns the tables of the page. Each option of their packages is in one of them.
func tables() []table {
	attempt := []string{"WithInterrupted", "WithMaxRecord", "WithRetention"}
	isRoot := func(o Option) bool { return strings.HasPrefix(o.Where, "`New") }
	ofAttempt := func(o Option) bool { return slices.Contains(attempt, o.Name) }
	return []table{
		{"LOCK", []string{"core"}, func(o Option) bool { return !isRoot(o) && !ofAttempt(o) }},
		{"LOCKER", []string{"core"}, isRoot},
		{"ATTEMPT", []string{"core"}, ofAttempt},
		{"HTTP", []string{"nethttplock", "ginlock", "echolock"}, func(Option) bool { return true }},
		{"GRPC", []string{"grpclock"}, func(Option) bool { return true }},
	}
}

// Page returns the text of the page. The root is the folder of the repository.
func Page(root string) (string, error) {
	page := "<!-- go generate ./tests/docs writes this page from the comments in the code and from tests/docs/configuration. -->\n" + frame
	for _, t := range tables() {
		rows, err := t.rows(root)
		if err != nil {
			return "", err
		}
		before, after, ok := strings.Cut(page, "\n"+t.line+"\n")
		if !ok {
			return "", fmt.Errorf("the frame of the page has no line %q", t.line)
		}
		page = before + "\n" + rows + after
	}
	return page, nil
}

// rows returns the table. The options of its packages must be alike.
func (t table) rows(root string) (string, error) {
	var b strings.Builder
	b.WriteString("| option | default | meaning | where |\n|---|---|---|---|\n")
	var like []Option
	for _, name := range t.packages {
		options, err := Options(root, name)
		if err != nil {
			return "", err
		}
		if like == nil {
			like = options
		}
		if !slices.Equal(like, options) {
			return "", fmt.Errorf("the comments of the options of %s and %s differ:\n%v\n%v", t.packages[0], name, like, options)
		}
	}
	for _, o := range like {
		if t.takes(o) {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", o.Name, cmp.Or(o.Default, "not set"), o.Meaning, o.Where)
		}
	}
	return b.String(), nil
}
