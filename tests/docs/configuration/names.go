package configuration

import (
	"go/doc"
	"regexp"
	"strings"
)

// candidate finds what may be a name in a comment.
var candidate = regexp.MustCompile(`"[^"]*"|[A-Za-z]\w*(?:\.[A-Za-z]\w*)*`)

// marked returns a text with its names as code: those that the package exports, those of other
// packages, and all that is in quotes. Exception: an exported name that begins the text and has
// no other capital is plain English.
func marked(p *doc.Package, text string) string {
	exported := names(p)
	return candidate.ReplaceAllStringFunc(text, func(w string) string {
		isStart := text != w && strings.HasPrefix(text, w) && !strings.ContainsAny(w[1:], "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
		if strings.ContainsAny(w, `."`) || exported[w] && !isStart {
			return "`" + w + "`"
		}
		return w
	})
}

// names returns the names that a package exports, with those of its methods.
func names(p *doc.Package) map[string]bool {
	found := make(map[string]bool)
	functions := func(list []*doc.Func) {
		for _, f := range list {
			found[f.Name] = true
		}
	}
	values := func(groups []*doc.Value) {
		for _, group := range groups {
			for _, name := range group.Names {
				found[name] = true
			}
		}
	}
	functions(p.Funcs)
	values(p.Consts)
	values(p.Vars)
	for _, kind := range p.Types {
		found[kind.Name] = true
		functions(kind.Funcs)
		functions(kind.Methods)
		values(kind.Consts)
		values(kind.Vars)
	}
	return found
}
