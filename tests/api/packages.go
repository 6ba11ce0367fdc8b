package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
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
	exports, err := compile(ctx, dir)
	if err != nil {
		return nil, err
	}
	open := func(imported string) (io.ReadCloser, error) {
		if file := exports[imported]; file != "" {
			return os.Open(file) //nolint:gosec // the go command named the file
		}
		return nil, fmt.Errorf("the go command did not compile package %s", imported)
	}
	compiled := importer.ForCompiler(token.NewFileSet(), "gc", open)
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

// compile returns the files of types of all packages that the packages of the API need,
// by their import paths.
func compile(ctx context.Context, dir string) (map[string]string, error) {
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Export"}
	for _, name := range Packages() {
		args = append(args, path.Join(module, name))
	}
	list := exec.CommandContext(ctx, "go", args...)
	list.Dir = dir
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.Bytes())
	}
	exports := make(map[string]string)
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Export string }
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return exports, nil
		}
		if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
	}
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
