// Package layout tests what the compiler and the linter do not see: which package imports which, the
// links of pages and comments, what scripts say about modules, and the names of keys in examples.
package layout
