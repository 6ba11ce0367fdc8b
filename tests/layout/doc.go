// Package layout tests the guards of this repository: the import rules of the linter and the
// paths in scripts. A guard with a stale path checks nothing without an error. These tests
// find such paths.
package layout
