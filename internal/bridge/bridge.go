// Package bridge lets the adapters reach what package core does not export. core sets the functions
// in its init. Values of core have the type any here, because core imports this package.
package bridge

// NewAnswer returns the core.Answer with these bytes, in the format of an adapter. The format is
// that of package internal/answer, which core does not know.
var NewAnswer func(encoded []byte) any
