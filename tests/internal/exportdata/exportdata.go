// Package exportdata gives tests the types of compiled packages. The go command compiles
// the packages, so a test reads the same types that a compiler would.
package exportdata

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
)

// Importer returns an importer of the packages with these import paths, and of all packages
// that they import. The folder is any one in a module that has the packages, or that
// requires their modules. A package that does not exist, or does not compile, is an error of
// the importer.
func Importer(ctx context.Context, dir string, paths []string) (types.Importer, error) {
	args := append([]string{"list", "-e", "-export", "-deps", "-json=ImportPath,Export,Error", "--"}, paths...)
	list := exec.CommandContext(ctx, "go", args...) //nolint:gosec // tests choose the paths
	list.Dir = dir
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.Bytes())
	}
	compiled, err := decode(out)
	if err != nil {
		return nil, err
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", compiled.open), nil
}

// A listed is what the go command says about a package.
type listed struct {
	ImportPath, Export string
	Error              *struct{ Err string }
}

// packages holds packages by their import paths.
type packages map[string]listed

func decode(out []byte) (packages, error) {
	found := make(packages)
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		found[p.ImportPath] = p
	}
}

func (found packages) open(imported string) (io.ReadCloser, error) {
	p := found[imported]
	switch {
	case p.Export != "":
		return os.Open(p.Export) // the go command named the file
	case p.Error != nil:
		return nil, errors.New(p.Error.Err)
	}
	return nil, fmt.Errorf("the go command did not compile package %s", imported)
}
