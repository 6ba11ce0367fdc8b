package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
)

// A Prelude is a list of folders with Go files. Their variables are the free names of a
// snippet.
type Prelude []string

// parse returns the files of a prelude, as files of the package of a snippet.
func (p Prelude) parse(fset *token.FileSet) ([]*ast.File, error) {
	var files []*ast.File
	for _, dir := range p {
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			file.Name = ast.NewIdent("snippet")
			files = append(files, file)
		}
	}
	return files, nil
}

// declared returns the names that files declare.
func declared(files ...*ast.File) map[string]bool {
	names := make(map[string]bool)
	for _, file := range files {
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil {
					names[decl.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					for _, name := range specNames(spec) {
						names[name.Name] = true
					}
				}
			}
		}
	}
	return names
}

// specNames returns the names that a specification declares.
func specNames(spec ast.Spec) []*ast.Ident {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		return []*ast.Ident{spec.Name}
	case *ast.ValueSpec:
		return spec.Names
	}
	return nil
}

// without returns the file of a prelude without variables that a snippet declares itself.
func without(file *ast.File, names map[string]bool) *ast.File {
	rest := *file
	rest.Decls = nil
	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.VAR {
			rest.Decls = append(rest.Decls, decl)
			continue
		}
		kept := *group
		kept.Specs = nil
		for _, spec := range group.Specs {
			value := *spec.(*ast.ValueSpec)
			value.Names = slices.DeleteFunc(slices.Clone(value.Names), func(name *ast.Ident) bool { return names[name.Name] })
			if len(value.Names) > 0 {
				kept.Specs = append(kept.Specs, &value)
			}
		}
		rest.Decls = append(rest.Decls, &kept)
	}
	return &rest
}
