// Package frameworks has the code of docs/frameworks.md: reqlock with frameworks that need no
// adapter. Each file has the part of a program that uses one of them, and its test runs that
// part.
package frameworks
