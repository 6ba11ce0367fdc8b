package docs

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/reqlock/reqlock/tests/internal/exportdata"
)

// Check checks the types of blocks. The folder is any one in the module whose requirements
// the blocks may import. It returns what a reader who copies a block would be told: texts
// that begin with the page and the line.
//
// In a snippet, variables that are not used are right. A file must compile as it is.
func Check(ctx context.Context, dir string, preludes map[string]Prelude, blocks []Block) ([]string, error) {
	c := checker{fset: token.NewFileSet(), preludes: make(map[string][]*ast.File)}
	var all []*ast.File
	for name, prelude := range preludes {
		files, err := prelude.parse(c.fset)
		if err != nil {
			return nil, err
		}
		c.preludes[name] = files
		all = append(all, files...)
	}
	var units []unit
	for _, b := range blocks {
		if u, ok := c.prepare(b); ok {
			units = append(units, u)
			all = append(all, u.file)
		}
	}
	var err error
	if c.importer, err = exportdata.Importer(ctx, dir, imported(all)); err != nil {
		return nil, err
	}
	for _, u := range units {
		c.check(u)
	}
	slices.Sort(c.findings)
	return slices.Compact(c.findings), nil
}

// A unit is a block with its syntax.
type unit struct {
	Block
	file *ast.File
}

// A checker collects findings in blocks.
type checker struct {
	fset     *token.FileSet
	preludes map[string][]*ast.File
	importer types.Importer
	findings []string
}

// report adds a finding in a line of a page.
func (c *checker) report(page string, line int, text string) {
	c.findings = append(c.findings, fmt.Sprintf("%s:%d: %s", page, line, text))
}

// prepare parses a block, and adds its imports.
func (c *checker) prepare(b Block) (unit, bool) {
	prelude, known := c.preludes[b.Prelude]
	if !known {
		c.report(b.Page, b.Line, fmt.Sprintf("there is no prelude %q", b.Prelude))
		return unit{}, false
	}
	file, err := b.parse(c.fset)
	var wrong scanner.ErrorList
	switch {
	case errors.As(err, &wrong):
		c.report(b.Page, wrong[0].Pos.Line, wrong[0].Msg) // the others may be its consequences
		return unit{}, false
	case err != nil:
		c.report(b.Page, b.Line, err.Error())
		return unit{}, false
	}
	if !b.isWhole() {
		addImports(file, declared(append(slices.Clone(prelude), file)...))
	}
	return unit{b, file}, true
}

// check checks the types of a block.
func (c *checker) check(u unit) {
	files := []*ast.File{u.file}
	if !u.isWhole() {
		own := declared(u.file)
		for _, file := range c.preludes[u.Prelude] {
			files = append(files, without(file, own))
		}
	}
	config := types.Config{Importer: c.importer, Error: func(err error) {
		var wrong types.Error
		if errors.As(err, &wrong) {
			c.reportTypeError(u, wrong)
		}
	}}
	p, _ := config.Check(u.file.Name.Name, c.fset, files, nil) // the errors were reported one by one
	if p.Name() == "main" && p.Scope().Lookup("main") == nil {
		c.report(u.Page, u.Line, "function main is undeclared in the main package")
	}
}

// reportTypeError reports an error of types, unless a snippet may have it, or another error causes it.
func (c *checker) reportTypeError(u unit, wrong types.Error) {
	if strings.Contains(wrong.Msg, "(unknown type)") {
		return
	}
	position := c.fset.Position(wrong.Pos)
	if !u.isWhole() {
		if strings.HasPrefix(wrong.Msg, "declared and not used") || strings.Contains(wrong.Msg, "imported and not used") ||
			strings.Contains(wrong.Msg, "imported as ") && strings.Contains(wrong.Msg, " and not used") {
			return
		}
	}
	line := position.Line
	if position.Filename != u.Page { // such as an import that was added
		line = u.Line
	}
	c.report(u.Page, line, strings.Join(strings.Fields(wrong.Msg), " "))
}
