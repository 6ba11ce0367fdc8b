// Package adaptertest holds helpers that the tests of several adapters use. Cases that
// all adapters have in common are in tests/conformance.
package adaptertest
