package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// operators has the operator that takes the place of another one.
var operators = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD,
}

// A rewrite puts a text in place of a part of a file.
type rewrite struct {
	from, to token.Pos
	text     string
}

// sample returns n changes of the package in a directory that the seed chooses, or all if
// there are fewer: an operator becomes another one, a condition is inverted, or a statement
// is left out. Some of them do not compile.
func sample(dir string, n int, seed uint64) ([]mutant, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	pkg, err := build.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, name := range pkg.GoFiles {
		path := filepath.Join(dir, name)
		source, err := os.ReadFile(path) //nolint:gosec // a file of the product
		if err != nil {
			return nil, err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, r := range rewrites(file, func(n ast.Node) string {
			return string(source[set.Position(n.Pos()).Offset:set.Position(n.End()).Offset])
		}) {
			at, end := set.Position(r.from), set.Position(r.to)
			line := strings.TrimSpace(strings.Split(string(source), "\n")[at.Line-1])
			all = append(all, mutant{
				name:    fmt.Sprintf("%s:%d:%d", name, at.Line, at.Column),
				mistake: fmt.Sprintf("%q in %q", r.text, line),
				files:   map[string]string{path: string(source[:at.Offset]) + r.text + string(source[end.Offset:])},
			})
		}
	}
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a sample that can be drawn again
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(n, len(all))], nil
}

// rewrites returns what can be changed in a file.
func rewrites(file *ast.File, text func(ast.Node) string) (all []rewrite) {
	leaveOut := func(list []ast.Stmt) {
		for _, statement := range list {
			switch s := statement.(type) {
			case *ast.AssignStmt:
				if s.Tok == token.DEFINE {
					continue
				}
			case *ast.ExprStmt, *ast.IncDecStmt, *ast.SendStmt:
			default:
				continue
			}
			all = append(all, rewrite{statement.Pos(), statement.End(), "if false { " + text(statement) + " }"})
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.GenDecl:
			return node.Tok == token.VAR // constants and types stay
		case *ast.BinaryExpr:
			if other, ok := operators[node.Op]; ok {
				all = append(all, rewrite{node.OpPos, node.OpPos + token.Pos(len(node.Op.String())), other.String()})
			}
		case *ast.IfStmt:
			if _, compares := node.Cond.(*ast.BinaryExpr); !compares {
				all = append(all, rewrite{node.Cond.Pos(), node.Cond.End(), "!(" + text(node.Cond) + ")"})
			}
		case *ast.BlockStmt:
			leaveOut(node.List)
		case *ast.CaseClause:
			leaveOut(node.Body)
		case *ast.CommClause:
			leaveOut(node.Body)
		}
		return true
	})
	return all
}
