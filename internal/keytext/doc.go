// Package keytext makes lock keys of the parts of a request: texts from headers, paths,
// queries and bodies, and values that other middlewares have stored.
//
// All adapters use it, so that the same input is the same key, or is refused, on every
// framework. Its errors are core's ErrNoKey and ErrInvalidKey. They never quote the input.
package keytext
