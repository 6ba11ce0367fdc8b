// Package keypart makes lock keys of what requests carry: text from headers,
// paths, queries and bodies, and values that other middlewares left behind.
//
// All adapters use it, so that the same input is a key, or is refused, on every
// framework. Its errors are core's ErrNoKey and ErrInvalidKey, and never quote
// the input.
package keypart
