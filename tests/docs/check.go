package docs

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/reqlock/reqlock/tests/internal/exportdata"
)

// A Prelude is a list of folders with Go files. Their variables are the free names of a
// snippet.
type Prelude []string

// Check checks the types of blocks. The folder is any one in the module whose requirements
// the blocks may import. It returns what a reader who copies a block would be told: texts
// that begin with the page and the line.
//
// In a snippet, variables that are not used are right. A file must compile as it is.
func Check(ctx context.Context, dir string, preludes map[string]Prelude, blocks []Block) ([]string, error) {
	c := checker{fset: token.NewFileSet()}
	parsed := make([][]*ast.File, len(blocks))
	var paths []string
	for i, b := range blocks {
		files, err := c.parse(b, preludes)
		if err != nil {
			return nil, err
		}
		parsed[i], paths = files, append(paths, imported(files)...)
	}
	slices.Sort(paths)
	var err error
	if c.importer, err = exportdata.Importer(ctx, dir, slices.Compact(paths)); err != nil {
		return nil, err
	}
	for i, b := range blocks {
		if len(parsed[i]) > 0 {
			c.check(b, parsed[i])
		}
	}
	slices.Sort(c.findings)
	return slices.Compact(c.findings), nil
}

// A checker collects findings in blocks.
type checker struct {
	fset     *token.FileSet
	importer types.Importer
	findings []string
}

// report adds a finding in a line of a page.
func (c *checker) report(b Block, line int, text string) {
	c.findings = append(c.findings, fmt.Sprintf("%s:%d: %s", b.Page, line, strings.Join(strings.Fields(text), " ")))
}

// isWhole reports whether a block is a whole file.
func (b Block) isWhole() bool {
	_, err := parser.ParseFile(token.NewFileSet(), "", b.Text, parser.PackageClauseOnly)
	return err == nil
}

// parse returns the files of a block: its own one, and those of its prelude. It returns none if the syntax of
// the block is wrong.
func (c *checker) parse(b Block, preludes map[string]Prelude) ([]*ast.File, error) {
	prelude, known := preludes[b.Prelude]
	if !known {
		c.report(b, b.Line, fmt.Sprintf("there is no prelude %q", b.Prelude))
		return nil, nil
	}
	line := fmt.Sprintf("//line %s:%d\n", path.Base(b.Page), b.Line) // the parser adds the folder
	texts := []string{line + b.Text}
	if !b.isWhole() {
		texts = []string{clause + line + b.Text, clause + "func _() {\n" + line + b.Text + "}\n"}
	}
	var file *ast.File
	var wrong scanner.ErrorList
	for i, text := range texts {
		tree, err := parser.ParseFile(c.fset, b.Page, text, parser.SkipObjectResolution)
		if err == nil {
			file = tree
			break
		}
		// Of a snippet that begins with a declaration, the first error is the one to report.
		if i == 0 || !declaration.MatchString(b.Text) {
			errors.As(err, &wrong)
		}
	}
	if file == nil {
		c.report(b, wrong[0].Pos.Line, wrong[0].Msg) // the others may be its consequences
		return nil, nil
	}
	files := []*ast.File{file}
	if b.isWhole() {
		return files, nil
	}
	addImports(file)
	for _, folder := range prelude {
		names, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			free, err := parser.ParseFile(c.fset, name, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			free.Name = file.Name
			files = append(files, free)
		}
	}
	return files, nil
}

// clause begins the file of a snippet.
const clause = "package snippet\n"

// declaration matches a snippet that begins with a declaration.
var declaration = regexp.MustCompile(`^(//.*\n)*(func|type|var|const|import)\b`)

// allowed matches the errors that a snippet may have: it leaves out what a reader has, and may be the middle of any function.
var allowed = regexp.MustCompile(`^declared and not used|imported (as \w+ )?and not used|^too many return values`)

// check checks the types of a block. The types of the snippet hide those of the prelude, since they come first.
func (c *checker) check(b Block, files []*ast.File) {
	config := types.Config{Importer: c.importer, Error: func(err error) {
		var wrong types.Error
		if !errors.As(err, &wrong) || strings.HasPrefix(wrong.Msg, "\t") || strings.Contains(wrong.Msg, "(unknown type)") {
			return // more about another error, or its consequence
		}
		switch position := c.fset.Position(wrong.Pos); {
		case !b.isWhole() && allowed.MatchString(wrong.Msg):
		case position.Filename == b.Page:
			c.report(b, position.Line, wrong.Msg)
		case position.Filename == "": // an import that was added
			c.report(b, b.Line, wrong.Msg)
		}
	}}
	_, _ = config.Check(files[0].Name.Name, c.fset, files, nil) // the errors were reported one by one
}
