package api

import (
	"go/types"
	"slices"
	"strings"
)

// describe returns the API of a package as sorted lines, as package types writes it. Exported fields have lines of
// their own, and so have exported methods, also those of embedded fields.
func describe(p *types.Package) string {
	var lines []string
	inside := func(other *types.Package) string {
		if other == p {
			return ""
		}
		return other.Name()
	}
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		line := types.ObjectString(o, inside)
		if constant, ok := o.(*types.Const); ok {
			line += " = " + constant.Val().String()
		}
		named, ok := types.Unalias(o.Type()).(*types.Named)
		// Users cannot look up a type of an internal package, so its lines are those of its alias.
		if _, isType := o.(*types.TypeName); isType && ok && (named.Obj() == o || strings.Contains(named.Obj().Pkg().Path(), "/internal/")) {
			if fields, ok := named.Underlying().(*types.Struct); ok {
				line, _, _ = strings.Cut(line, " struct{")
				line += " struct"
				for field := range fields.Fields() {
					if field.Exported() {
						lines = append(lines, line+", "+field.Name()+" "+types.TypeString(field.Type(), inside))
					}
				}
			}
			for selection := range types.NewMethodSet(types.NewPointer(named)).Methods() {
				method := types.ObjectString(selection.Obj(), inside)
				if len(selection.Index()) > 1 { // of an embedded field
					method = "type " + name + ", " + method
				}
				if selection.Obj().Exported() {
					lines = append(lines, method)
				}
			}
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n") + "\n"
}
