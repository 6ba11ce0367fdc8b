package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tables are the packages whose options each section of docs/configuration.md has.
var tables = map[string][]string{
	"Locks":               {"core"},
	"The whole Locker":    {"core"},
	"Idempotent requests": {"core"},
	"HTTP requests":       {"core"},
	"HTTP middlewares":    {"nethttplock", "ginlock", "echolock", "echov5lock", "fiberlock"},
	"gRPC interceptors":   {"grpclock"},
	"Metrics and traces":  {"otellock"},
}

// optionRow matches the row of an option: its name, its default, its meaning, and where it is allowed.
var optionRow = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([^|]+) \\| ([^|]+) \\|(?: ([^|]+) \\|)?$")

// rowsOf returns the rows of a section.
func rowsOf(t *testing.T, section string) [][]string {
	t.Helper()
	_, text, _ := strings.Cut(read(t, "docs/configuration.md"), "\n## "+section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	rows := optionRow.FindAllStringSubmatch(text, -1)
	if len(rows) == 0 {
		t.Errorf("docs/configuration.md has no options in the section %s", section)
	}
	return rows
}

// optionsOf returns the comments of the options of a package by their names, each on one line.
func optionsOf(t *testing.T, name string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, name, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range tree.Decls {
			f, ok := declared.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !f.Name.IsExported() || f.Type.Results == nil || strings.HasSuffix(file, "_test.go") {
				continue
			}
			kind := f.Type.Results.List[0].Type
			if selected, ok := kind.(*ast.SelectorExpr); ok { // core.Option
				kind = selected.Sel
			}
			if kind, ok := kind.(*ast.Ident); ok && kind.Name == "Option" {
				found[f.Name.Name] = strings.ReplaceAll(strings.Join(strings.Fields(f.Doc.Text()), " "), "; - ", "; ") // of a list, too
			}
		}
	}
	return found
}

// Each option has one row, and its default is in the comment of the option.
func TestConfigurationHasEachOption(t *testing.T) {
	t.Parallel()
	comments, rows := make(map[string]map[string]string), make(map[string][]string) // by package
	for section, packages := range tables {
		for _, name := range packages {
			if comments[name] == nil {
				comments[name] = optionsOf(t, name)
			}
			for _, row := range rowsOf(t, section) {
				rows[name] = append(rows[name], row[1])
				switch comment, ok := comments[name][row[1]]; {
				case !ok:
					t.Errorf("docs/configuration.md has a row of %s, and package %s has no such option", row[1], name)
				case row[2] != "not set" && !strings.Contains(comment, strings.ReplaceAll(row[2], "`", "")):
					t.Errorf("the default of %s is %q in docs/configuration.md, and the comment in %s does not say that", row[1], row[2], name)
				}
			}
		}
	}
	for name, has := range rows {
		for option := range comments[name] {
			if i := slices.Index(has, option); i < 0 || slices.Contains(has[i+1:], option) {
				t.Errorf("docs/configuration.md needs one row of %s.%s", name, option)
			}
		}
	}
}
