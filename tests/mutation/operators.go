package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
)

// comparisons has, for each operator of order, the function of the runtime that can
// change it.
var comparisons = map[token.Token]string{
	token.LSS: "mutLess", token.LEQ: "mutLessEqual", token.GTR: "mutGreater", token.GEQ: "mutGreaterEqual",
}

// A mutation is one way to change one place of the source.
type mutation struct {
	pos  token.Pos
	what string
	edit edit
}

// An edit puts text around a node, or in place of a part of it.
type edit struct {
	node ast.Node
	make func(text func(ast.Node) string, id int) string
}

// mutations returns what can be changed in a file. Each node has at most one mutation
// that rewrites it whole, and statements may be left out besides.
func mutations(file *ast.File, info *types.Info) []mutation {
	var found []mutation
	add := func(node ast.Node, what string, make func(func(ast.Node) string, int) string) {
		found = append(found, mutation{node.Pos(), what, edit{node, make}})
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.GenDecl:
			return node.Tok == token.VAR // constants and types stay
		case *ast.BinaryExpr:
			binary(node, info, add)
		case *ast.BlockStmt:
			leaveOut(node.List, info, add)
		case *ast.CaseClause:
			leaveOut(node.Body, info, add)
		case *ast.CommClause:
			leaveOut(node.Body, info, add)
		case *ast.IfStmt:
			invert(node.Cond, info, add)
		case *ast.ForStmt:
			if node.Cond != nil {
				return true // an inverted condition of a loop is found at once, or hangs
			}
		}
		return true
	})
	return found
}

// binary adds the mutation of an operator.
func binary(node *ast.BinaryExpr, info *types.Info, add func(ast.Node, string, func(func(ast.Node) string, int) string)) {
	if info.Types[node].Value != nil {
		return // a constant expression
	}
	call := func(name string) func(func(ast.Node) string, int) string {
		return func(text func(ast.Node) string, id int) string {
			return fmt.Sprintf("%s(%d, %s, %s)", name, id, text(node.X), text(node.Y))
		}
	}
	kind := info.TypeOf(node.X)
	switch op := node.Op; op {
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		if isBasic(kind) {
			add(node, "bound of "+op.String(), call(comparisons[op]))
		}
	case token.EQL, token.NEQ:
		add(node, "negated "+op.String(), func(text func(ast.Node) string, id int) string {
			return fmt.Sprintf("mutNot(%d, %s %s %s)", id, text(node.X), op, text(node.Y))
		})
	case token.LAND, token.LOR:
		name := map[token.Token]string{token.LAND: "mutAnd", token.LOR: "mutOr"}[op]
		add(node, "other than "+op.String(), func(text func(ast.Node) string, id int) string {
			return fmt.Sprintf("%s(%d, %s, func() bool { return %s })", name, id, text(node.X), text(node.Y))
		})
	case token.ADD, token.SUB:
		name := map[token.Token]string{token.ADD: "mutAdd", token.SUB: "mutSub"}[op]
		if basic, ok := info.TypeOf(node).Underlying().(*types.Basic); ok && basic.Info()&types.IsNumeric != 0 {
			add(node, "other than "+op.String(), call(name))
		}
	}
}

// invert adds the mutation of a condition that is no comparison, which has its own.
func invert(cond ast.Expr, info *types.Info, add func(ast.Node, string, func(func(ast.Node) string, int) string)) {
	switch cond := cond.(type) {
	case *ast.BinaryExpr:
		return
	case *ast.UnaryExpr, *ast.CallExpr, *ast.Ident, *ast.SelectorExpr:
		if t, ok := info.TypeOf(cond).(*types.Basic); !ok || t.Kind() != types.Bool {
			return
		}
		add(cond, "inverted condition", func(text func(ast.Node) string, id int) string {
			return fmt.Sprintf("mutNot(%d, %s)", id, text(cond))
		})
	}
}

// leaveOut adds a mutation for each statement that can be missing: calls, assignments to
// what exists, increments, sends, deferred calls and new goroutines.
func leaveOut(list []ast.Stmt, info *types.Info, add func(ast.Node, string, func(func(ast.Node) string, int) string)) {
	for _, statement := range list {
		switch s := statement.(type) {
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.SendStmt:
		case *ast.DeferStmt:
			continue // inside a block it would run at the same time, but unlocks hang the test only
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		default:
			continue
		}
		if isTerminating(statement, info) {
			continue
		}
		add(statement, "left out", func(text func(ast.Node) string, id int) string {
			return fmt.Sprintf("if !mutOn(%d) { %s }", id, text(statement))
		})
	}
}

// isTerminating reports whether the compiler counts on the statement to end a function:
// whether it is a call of panic.
func isTerminating(statement ast.Stmt, info *types.Info) bool {
	expression, ok := statement.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := expression.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	name, ok := call.Fun.(*ast.Ident)
	if !ok {
		return false
	}
	_, builtin := info.Uses[name].(*types.Builtin)
	return builtin && name.Name == "panic"
}

// isBasic reports whether values of the type have an order and a name-free form.
func isBasic(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsOrdered != 0
}
