package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"path"
	"strings"
)

// isWhole reports whether a block is a whole file.
func (b Block) isWhole() bool { return firstToken(b.Text) == token.PACKAGE }

// firstToken returns the first token of Go code, without comments.
func firstToken(code string) token.Token {
	file := token.NewFileSet().AddFile("", -1, len(code))
	var s scanner.Scanner
	s.Init(file, []byte(code), nil, 0)
	_, first, _ := s.Scan()
	return first
}

// parse returns the syntax of a block: a file. A snippet that begins with a declaration is
// put at the level of the file, any other one in a function.
func (b Block) parse(fset *token.FileSet) (*ast.File, error) {
	line := fmt.Sprintf("//line %s:%d\n", path.Base(b.Page), b.Line) // the parser adds the folder
	if b.isWhole() {
		return parser.ParseFile(fset, b.Page, line+b.Text, parser.SkipObjectResolution)
	}
	switch firstToken(b.Text) {
	case token.FUNC, token.TYPE, token.VAR, token.CONST, token.IMPORT:
		file, err := parser.ParseFile(fset, b.Page, clause+line+b.Text, parser.SkipObjectResolution)
		if err == nil {
			return file, nil
		}
		// Statements may follow the declaration.
		if inside, errInside := b.parseStatements(fset, line); errInside == nil {
			return inside, nil
		}
		return nil, err
	}
	return b.parseStatements(fset, line)
}

// clause begins the file of a snippet.
const clause = "package snippet\n"

// parseStatements is parse for a snippet of statements.
func (b Block) parseStatements(fset *token.FileSet, line string) (*ast.File, error) {
	file, err := parser.ParseFile(fset, b.Page, clause+"func _() {\n"+line+b.Text+"}\n", parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	giveResults(file)
	return file, nil
}

// giveResults gives the only function of a file the results that its return statements need:
// a snippet may be the middle of a function that returns an error, or a reply and an error.
func giveResults(file *ast.File) {
	function := file.Decls[0].(*ast.FuncDecl)
	n := 0
	ast.Inspect(function.Body, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			n = max(n, len(node.Results))
		}
		return true
	})
	if n == 0 {
		return
	}
	types := append(strings.Fields(strings.Repeat("any ", n-1)), "error")
	function.Type.Results = &ast.FieldList{}
	last := &ast.ReturnStmt{}
	for _, name := range types {
		function.Type.Results.List = append(function.Type.Results.List, &ast.Field{Type: ast.NewIdent(name)})
		last.Results = append(last.Results, ast.NewIdent("nil"))
	}
	function.Body.List = append(function.Body.List, last)
}
