package configuration

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// An Option is an option of one package.
type Option struct {
	Name    string // such as "WithTTL"
	Default string // empty if the option has no default
	Meaning string // a sentence
	Where   string // where it is allowed
}

// Options returns the options of a package of the repository, in alphabetical order: its
// functions that return the kind, which is "Option" or the name of another type.
func Options(root, name, kind string) ([]Option, error) {
	p, err := read(filepath.Join(root, filepath.FromSlash(name)), name)
	if err != nil {
		return nil, err
	}
	var options []Option
	for _, declared := range p.Types {
		if declared.Name != kind {
			continue
		}
		for _, function := range declared.Funcs {
			o, err := parse(function.Name, strings.Join(strings.Fields(function.Doc), " "))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			o.Meaning = marked(p, o.Meaning)
			o.Default = marked(p, o.Default)
			options = append(options, o)
		}
	}
	if len(options) == 0 {
		return nil, fmt.Errorf("package %s has no options", name)
	}
	return options, nil
}

// read returns the documentation of the package in a folder.
func read(dir, name string) (*doc.Package, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, filepath.Join(dir, entry.Name()), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return doc.NewFromFiles(fset, files, name)
}
