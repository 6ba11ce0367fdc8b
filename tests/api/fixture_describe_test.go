package api

import (
	"fmt"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// A describer collects the lines of one package.
type describer struct {
	pkg   *types.Package
	lines []string
}

// describe returns the API of a package: sorted lines.
func describe(p *types.Package) string {
	d := describer{pkg: p}
	for _, name := range p.Scope().Names() {
		if token.IsExported(name) {
			d.object(p.Scope().Lookup(name))
		}
	}
	slices.Sort(d.lines)
	return strings.Join(slices.Compact(d.lines), "\n") + "\n"
}

func (d *describer) add(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// object adds the lines of an exported name of the package.
func (d *describer) object(o types.Object) {
	switch o := o.(type) {
	case *types.Const:
		d.add("const %s %s = %s", o.Name(), d.typeName(o.Type()), o.Val())
	case *types.Var:
		d.add("var %s %s", o.Name(), d.typeName(o.Type()))
	case *types.Func:
		d.add("func %s%s", o.Name(), d.signature(o.Signature()))
	case *types.TypeName:
		if alias, ok := o.Type().(*types.Alias); ok {
			d.alias(o.Name(), alias)
			return
		}
		d.namedType(o.Name(), o.Type().(*types.Named))
	}
}

// alias adds the lines of an alias. Users cannot look up a type of an internal package, so
// its lines are added under the name of the alias.
func (d *describer) alias(name string, alias *types.Alias) {
	d.add("type %s%s = %s", name, d.typeParams(alias.TypeParams()), d.typeName(alias.Rhs()))
	named, ok := alias.Rhs().(*types.Named)
	if ok && strings.Contains(named.Obj().Pkg().Path(), "/internal/") {
		d.namedType(name, named)
	}
}

// namedType adds the lines of a type, of its exported fields and of its exported methods,
// also of those that it has from an embedded field.
func (d *describer) namedType(name string, named *types.Named) {
	name += d.typeParams(named.TypeParams())
	switch underlying := named.Underlying().(type) {
	case *types.Struct:
		d.add("type %s struct", name)
		for field := range underlying.Fields() {
			if field.Exported() {
				d.add("type %s struct, %s %s", name, field.Name(), d.typeName(field.Type()))
			}
		}
	case *types.Interface:
		d.add("type %s interface", name)
		for method := range underlying.Methods() {
			if method.Exported() {
				d.add("type %s interface, %s%s", name, method.Name(), d.signature(method.Signature()))
			} else {
				d.add("type %s interface, unexported methods", name)
			}
		}
		return
	default:
		d.add("type %s %s", name, d.typeName(underlying))
	}

	ofValues := types.NewMethodSet(named)
	for selection := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		method := selection.Obj().(*types.Func)
		if !method.Exported() {
			continue
		}
		receiver := "*" + name
		if ofValues.Lookup(method.Pkg(), method.Name()) != nil {
			receiver = name
		}
		d.add("method (%s) %s%s", receiver, method.Name(), d.signature(method.Signature()))
	}
}

// signature returns the parameters and results of a function, with its type parameters.
func (d *describer) signature(s *types.Signature) string {
	return d.typeParams(s.TypeParams()) + strings.TrimPrefix(d.typeName(s), "func")
}

// typeParams returns a list of type parameters with their constraints, such as [T any].
func (d *describer) typeParams(list *types.TypeParamList) string {
	if list.Len() == 0 {
		return ""
	}
	var params []string
	for param := range list.TypeParams() {
		params = append(params, param.Obj().Name()+" "+d.typeName(param.Constraint()))
	}
	return "[" + strings.Join(params, ", ") + "]"
}

// typeName returns a type as source text.
func (d *describer) typeName(t types.Type) string {
	return types.TypeString(unnamed(t), func(p *types.Package) string {
		if p == d.pkg {
			return ""
		}
		return p.Name()
	})
}

// unnamed returns a type without the names of parameters and results: they are no part of
// the API.
func unnamed(t types.Type) types.Type {
	all := func(tuple *types.Tuple) *types.Tuple {
		var vars []*types.Var
		for v := range tuple.Variables() {
			vars = append(vars, types.NewParam(v.Pos(), v.Pkg(), "", unnamed(v.Type())))
		}
		return types.NewTuple(vars...)
	}
	switch t := t.(type) {
	case *types.Signature:
		return types.NewSignatureType(nil, nil, nil, all(t.Params()), all(t.Results()), t.Variadic())
	case *types.Pointer:
		return types.NewPointer(unnamed(t.Elem()))
	case *types.Slice:
		return types.NewSlice(unnamed(t.Elem()))
	case *types.Map:
		return types.NewMap(unnamed(t.Key()), unnamed(t.Elem()))
	}
	return t
}
