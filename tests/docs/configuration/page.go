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
	kind     string   // the type of the options
	packages []string // whose options are alike
	takes    func(Option) bool
}

// tables returns the tables of the page. Each option of their packages is in one of them.
func tables() []table {
	attempt := []string{"WithClientCancel", "WithInterrupted", "WithMaxRecord", "WithRetention"}
	isRoot := func(o Option) bool { return strings.HasPrefix(o.Where, "`New") }
	ofAttempt := func(o Option) bool { return slices.Contains(attempt, o.Name) }
	all := func(Option) bool { return true }
	http := []string{"nethttplock", "ginlock", "echolock"}
	return []table{
		{"LOCK", "Option", []string{"core"}, func(o Option) bool { return !isRoot(o) && !ofAttempt(o) }},
		{"LOCKER", "Option", []string{"core"}, isRoot},
		{"ATTEMPT", "Option", []string{"core"}, ofAttempt},
		{"HTTP", "Option", http, all},
		{"BODY", "BodyOption", http, all},
		{"GRPC", "Option", []string{"grpclock"}, all},
		{"OTEL", "Option", []string{"otellock"}, all},
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
	var like []Option
	for _, name := range t.packages {
		options, err := Options(root, name, t.kind)
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
	like = slices.DeleteFunc(like, func(o Option) bool { return !t.takes(o) })
	columns := 4
	if !slices.ContainsFunc(like, func(o Option) bool { return o.Where != everywhere }) {
		columns = 3
	}
	var b strings.Builder
	line := func(cells ...string) { b.WriteString("| " + strings.Join(cells[:columns], " | ") + " |\n") }
	line("option", "default", "meaning", "where")
	b.WriteString(strings.Repeat("|---", columns) + "|\n")
	for _, o := range like {
		line("`"+o.Name+"`", cmp.Or(o.Default, "not set"), o.Meaning, o.Where)
	}
	return b.String(), nil
}
