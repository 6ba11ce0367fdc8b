package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// step finds the rows of docs/code-paths.md: a package and its functions, in order.
var step = regexp.MustCompile("(?m)^\\| `([a-z/]+)` \\| (`.*?`) \\|")

// The functions of a row exist, and each one is called by one before it. A call across
// packages is often one of an interface or of a closure, so rows are not compared.
func TestCodePathsFollowTheCode(t *testing.T) {
	steps := step.FindAllStringSubmatch(pages(t)["docs/code-paths.md"], -1)
	if len(steps) < 40 {
		t.Fatalf("found only %d steps", len(steps))
	}
	for _, s := range steps {
		declared := calls(t, filepath.Join(root(t), s[1]))
		var called []string
		for i, name := range strings.Split(strings.ReplaceAll(s[2], "`", ""), ", ") {
			calls, found := declared[name]
			if !found {
				t.Errorf("%s has no function %s", s[1], name)
			}
			if bare := name[strings.LastIndexByte(name, '.')+1:]; i > 0 && !slices.Contains(called, bare) {
				t.Errorf("%s: no function before %s calls it: %s", s[1], name, s[2])
			}
			called = append(called, calls...)
		}
	}
}

// calls returns the functions of a package, methods with their types, and the names that
// each one uses.
func calls(t *testing.T, dir string) map[string][]string {
	t.Helper()
	found := make(map[string][]string)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		switch {
		case strings.HasSuffix(file, ".lua"):
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, function := range luaFunction.FindAllStringSubmatch(string(text), -1) {
				found[function[1]] = luaName.FindAllString(function[2], -1)
			}
		case strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go"):
			tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range tree.Decls {
				if f, ok := d.(*ast.FuncDecl); ok {
					found[functionName(f)] = namesIn(f)
				}
			}
		}
	}
	return found
}

var (
	luaFunction = regexp.MustCompile(`(?ms)^local function (\w+)\(.*?\)\n(.*?)^end`)
	luaName     = regexp.MustCompile(`\w+`)
)

// functionName returns the name of a function, or of a method with its type.
func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	receiver := f.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if generic, ok := receiver.(*ast.IndexExpr); ok {
		receiver = generic.X
	}
	name, _ := receiver.(*ast.Ident)
	return name.Name + "." + f.Name.Name
}

// namesIn returns the names in the body of a function.
func namesIn(f *ast.FuncDecl) (names []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		if name, ok := n.(*ast.Ident); ok {
			names = append(names, name.Name)
		}
		return true
	})
	return names
}
