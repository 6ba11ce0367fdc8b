package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// A mutant is one change of the package under test.
type mutant struct {
	id    int // from 1
	where string
	what  string
	line  string // of the source, as it stands
}

// An instrumented package is one whose files can change at run time.
type instrumented struct {
	dir     string // of the package
	overlay string // for go test
	mutants []mutant
}

// instrument writes the files of the package in dir anew, into the folder scratch, with n
// mutants that the seed chooses, or with all where there are fewer.
func instrument(dir, scratch string, n int, seed uint64) (*instrumented, error) {
	loaded, err := packages.Load(&packages.Config{
		Dir:  dir,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedDeps,
	}, ".")
	if err != nil {
		return nil, err
	}
	if len(loaded) != 1 || len(loaded[0].Errors) > 0 {
		return nil, fmt.Errorf("load %s: %v", dir, loaded)
	}
	pkg := loaded[0]

	type candidate struct {
		file int
		mutation
	}
	var all []candidate
	for i, file := range pkg.Syntax {
		for _, m := range mutations(file, pkg.TypesInfo) {
			all = append(all, candidate{i, m})
		}
	}
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a sample that can be drawn again
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = all[:min(n, len(all))]
	slices.SortFunc(all, func(a, b candidate) int { return int(a.pos - b.pos) })

	result := &instrumented{dir: dir}
	replace := map[string]string{}
	for i, file := range pkg.Syntax {
		path := pkg.Fset.Position(file.Package).Filename
		source, err := os.ReadFile(path) //nolint:gosec // a file of the package that is tested
		if err != nil {
			return nil, err
		}
		edits := map[ast.Node][]numbered{}
		for _, c := range all {
			if c.file != i {
				continue
			}
			at := pkg.Fset.Position(c.pos)
			id := len(result.mutants) + 1
			result.mutants = append(result.mutants, mutant{
				id: id, where: fmt.Sprintf("%s:%d", filepath.Base(path), at.Line), what: c.what,
				line: strings.TrimSpace(strings.Split(string(source), "\n")[at.Line-1]),
			})
			edits[c.edit.node] = append(edits[c.edit.node], numbered{id, c.edit})
		}
		if len(edits) == 0 {
			continue
		}
		written := filepath.Join(scratch, filepath.Base(path))
		if err := os.WriteFile(written, []byte(render(pkg.Fset, file, source, edits)), 0o600); err != nil { //nolint:gosec // in the scratch folder
			return nil, err
		}
		replace[path] = written
	}
	if len(result.mutants) == 0 {
		return nil, errors.New("nothing to change in " + dir)
	}
	added := filepath.Join(scratch, "mutation_runtime.go")
	if err := os.WriteFile(added, fmt.Appendf(nil, runtime, pkg.Name), 0o600); err != nil {
		return nil, err
	}
	replace[filepath.Join(filepath.Dir(pkg.GoFiles[0]), "mutation_runtime.go")] = added
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	result.overlay = filepath.Join(scratch, "overlay.json")
	return result, os.WriteFile(result.overlay, overlay, 0o600)
}

// A numbered edit is that of the mutant with its number.
type numbered struct {
	id int
	edit
}

// render returns the source of a file with its edits. An edit inside another one is part
// of the text that the outer one wraps.
func render(set *token.FileSet, file *ast.File, source []byte, edits map[ast.Node][]numbered) string {
	offset := func(pos token.Pos) int { return set.Position(pos).Offset }
	var text func(node ast.Node) string
	inside := func(node ast.Node) string { // the node's own text, with the edits inside it
		var out strings.Builder
		at := offset(node.Pos())
		ast.Inspect(node, func(child ast.Node) bool {
			if child == nil || child == node || edits[child] == nil {
				return true
			}
			out.Write(source[at:offset(child.Pos())])
			out.WriteString(text(child))
			at = offset(child.End())
			return false
		})
		out.Write(source[at:offset(node.End())])
		return out.String()
	}
	text = func(node ast.Node) string {
		own := edits[node]
		if len(own) == 0 {
			return inside(node)
		}
		edits[node] = own[1:]
		defer func() { edits[node] = own }()
		return own[0].make(text, own[0].id)
	}
	start, end := offset(file.FileStart), offset(file.FileEnd)
	return string(source[start:offset(file.Pos())]) + inside(file) + string(source[offset(file.End()):end])
}
