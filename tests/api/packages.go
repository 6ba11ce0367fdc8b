package api

import (
	"context"
	"go/token"
	"go/types"
	"path"

	"github.com/reqlock/reqlock/tests/internal/exportdata"
)

// module is the path of the main module.
const module = "github.com/reqlock/reqlock"

// Packages returns the names of the packages that users import, as paths in the module.
func Packages() []string {
	return []string{"core", "core/locktest", "echolock", "ginlock", "grpclock", "nethttplock"}
}

// File returns the path of a package's text in the repository.
func File(name string) string { return path.Join("api", path.Base(name)+".txt") }

// Texts returns the API of all packages, by the names of the packages. The folder is any
// one in the module. The go command compiles the packages.
func Texts(ctx context.Context, dir string) (map[string]string, error) {
	var paths []string
	for _, name := range Packages() {
		paths = append(paths, path.Join(module, name))
	}
	compiled, err := exportdata.Importer(ctx, dir, paths)
	if err != nil {
		return nil, err
	}
	texts := make(map[string]string)
	for _, name := range Packages() {
		p, err := compiled.Import(path.Join(module, name))
		if err != nil {
			return nil, err
		}
		texts[name] = text(p)
	}
	return texts, nil
}

// text returns the API of a package: sorted lines.
func text(p *types.Package) string {
	d := describer{pkg: p}
	scope := p.Scope()
	for _, name := range scope.Names() {
		if token.IsExported(name) {
			d.object(scope.Lookup(name))
		}
	}
	return d.String()
}
