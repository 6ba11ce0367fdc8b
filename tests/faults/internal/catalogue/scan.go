package catalogue

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Scan returns the proofs in all Go files of a repository, ordered by file. It reports each
// directive that is malformed, or that is not in the doc comment of a test: a function of a
// _test.go file that go test runs on Linux.
func Scan(repository fs.FS) ([]Proof, error) {
	var proofs []Proof
	var wrong []error
	err := fs.WalkDir(repository, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && name != "." && (name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
			return fs.SkipDir
		}
		if entry.IsDir() || path.Ext(file) != ".go" {
			return nil
		}
		source, err := fs.ReadFile(repository, file)
		if err != nil || !bytes.Contains(source, []byte(directive)) {
			return err
		}
		found, err := scanFile(file, source)
		proofs, wrong = append(proofs, found...), append(wrong, err)
		return nil
	})
	return proofs, errors.Join(append(wrong, err)...)
}

// scanFile returns the proofs in one file.
func scanFile(file string, source []byte) ([]Proof, error) {
	positions := token.NewFileSet()
	parsed, err := parser.ParseFile(positions, file, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	tests := testsByComment(parsed, file)
	if !isBuilt(file, source) {
		tests = nil
	}
	var proofs []Proof
	var wrong []error
	for _, group := range parsed.Comments {
		for _, comment := range group.List {
			found, err := parse(comment.Text)
			if len(found) > 0 && tests[group] == "" {
				err = errors.New("a directive that is not in the doc comment of a test")
			}
			if err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %w", positions.Position(comment.Pos()), err))
				continue
			}
			for _, proof := range found {
				proof.File, proof.Test = file, tests[group]
				proofs = append(proofs, proof)
			}
		}
	}
	return proofs, errors.Join(wrong...)
}

// isBuilt reports whether the name and the build constraints of a file select it on Linux,
// without any tags.
func isBuilt(file string, source []byte) bool {
	linux := build.Context{
		GOOS: "linux", GOARCH: "amd64", Compiler: "gc", CgoEnabled: true, ReleaseTags: build.Default.ReleaseTags,
		OpenFile: func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(source)), nil },
	}
	built, err := linux.MatchFile(path.Split(file))
	return err == nil && built
}

// testsByComment returns the names of the tests of a file by their doc comments.
func testsByComment(parsed *ast.File, file string) map[*ast.CommentGroup]string {
	tests := map[*ast.CommentGroup]string{}
	if !strings.HasSuffix(file, "_test.go") {
		return tests
	}
	for _, declaration := range parsed.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if ok && function.Doc != nil && isTest(function) {
			tests[function.Doc] = function.Name.Name
		}
	}
	return tests
}

// isTest reports whether go test runs a function as a test or a fuzz target.
func isTest(function *ast.FuncDecl) bool {
	parameters := function.Type.Params.List
	if function.Recv != nil || function.Type.Results != nil || len(parameters) != 1 {
		return false
	}
	pointer, ok := parameters[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	given, ok := pointer.X.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	for prefix, parameter := range map[string]string{"Test": "T", "Fuzz": "F"} {
		rest, ok := strings.CutPrefix(function.Name.Name, prefix)
		first, _ := utf8.DecodeRuneInString(rest)
		if ok && !unicode.IsLower(first) && given.Sel.Name == parameter {
			return true
		}
	}
	return false
}
