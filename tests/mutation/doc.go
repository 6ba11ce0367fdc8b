// Command mutation tests the tests of a package: it changes the package in many small
// ways, one at a time, and reports which changes no test of the package notices.
//
//	go run . -n 400 -seed 1 ../../internal/engine
//
// A mutant is one change of one expression or statement: a comparison moves its bound or
// is negated, an arithmetic sign flips, "and" becomes "or", a condition is inverted, a
// statement is left out. All mutants of a package are compiled into one test binary, and
// an environment variable switches one of them on. So a mutant costs the run of a few
// tests and no compilation.
//
// The command runs each test once by itself first, to learn how long it takes and which
// mutants it reaches. A mutant then meets the tests that reach it, the quickest first,
// until they fail twice, so that a test which fails by chance kills nothing. Tests that fail
// only once are reported as unstable. Tests that do not end within a generous limit kill the
// mutant, too. A mutant that no test reaches, or that passes all of them, survives.
//
// A survivor is not always a fault of the tests: the mutant may be equivalent to the
// original (a buffer that is a byte larger), or concern speed only. The report prints
// each survivor with its place, for a reader to judge.
package main
