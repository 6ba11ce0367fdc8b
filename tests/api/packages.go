package api

import (
	"context"
	"go/token"
	"go/types"
	"maps"
	"path"
	"path/filepath"
	"slices"

	"github.com/reqlock/reqlock/tests/internal/exportdata"
)

// module is the path of the main module.
const module = "github.com/reqlock/reqlock"

// Packages returns the names of the packages that users import, as paths in the module.
func Packages() []string {
	return slices.AppendSeq(mainModule(), maps.Keys(ownModules()))
}

// mainModule returns the packages of the main module.
func mainModule() []string {
	return []string{"core", "core/locktest", "echolock", "ginlock", "grpclock", "nethttplock"}
}

// ownModules returns the packages of other modules, with the folder of the module.
func ownModules() map[string]string {
	return map[string]string{"annotations/reqlockv1": "annotations", "otellock": "otellock"}
}

// File returns the path of a package's text in the repository.
func File(name string) string { return path.Join("api", path.Base(name)+".txt") }

// Texts returns the API of all packages, by the names of the packages. The folder is the
// root of the repository. The go command compiles the packages.
func Texts(ctx context.Context, root string) (map[string]string, error) {
	texts := make(map[string]string)
	if err := addTexts(ctx, texts, root, mainModule()); err != nil {
		return nil, err
	}
	for name, dir := range ownModules() {
		if err := addTexts(ctx, texts, filepath.Join(root, dir), []string{name}); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// addTexts adds the API of packages of the module in the folder.
func addTexts(ctx context.Context, texts map[string]string, dir string, names []string) error {
	var paths []string
	for _, name := range names {
		paths = append(paths, path.Join(module, name))
	}
	compiled, err := exportdata.Importer(ctx, dir, paths)
	if err != nil {
		return err
	}
	for _, name := range names {
		p, err := compiled.Import(path.Join(module, name))
		if err != nil {
			return err
		}
		texts[name] = text(p)
	}
	return nil
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
