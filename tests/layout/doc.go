// Package layout tests the guards of this repository: the linter's rules of imports, the
// variables that scripts set by the linker, and the links of its pages. If the path in a
// guard is stale, the guard checks nothing and reports nothing. These tests fail then.
package layout
