// Package layout tests what the compiler and the linter do not see: which package imports which, the
// links of pages and comments, the tests that the list of faults names, the names of test files, and
// what scripts say about modules.
package layout
