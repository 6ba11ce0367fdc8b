// Package exportdata gives tests the types of compiled packages. The go command compiles
// the packages, so a test reads the same types that a compiler would.
package exportdata

import (
	"bytes"
	"context"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Importer returns an importer of the packages with these import paths, and of all packages
// that they import. The folder is any one in a module that has the packages, or that
// requires their modules. A package that does not exist, or does not compile, is an error of
// the importer.
func Importer(ctx context.Context, dir string, paths []string) (types.Importer, error) {
	args := append([]string{"list", "-e", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "--"}, paths...)
	list := exec.CommandContext(ctx, "go", args...) //nolint:gosec // tests choose the paths
	list.Dir = dir
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.Bytes())
	}
	files := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		imported, file, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		files[imported] = file
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(imported string) (io.ReadCloser, error) {
		if files[imported] == "" {
			return nil, fmt.Errorf("there is no package %s that compiles\n%s", imported, stderr.Bytes())
		}
		return os.Open(files[imported])
	}), nil
}
