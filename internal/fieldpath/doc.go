// Package fieldpath reads the key of a lock from a field of a protobuf message, by the path of
// the field. It knows descriptors and messages only, so the code and the annotations of a method
// have the same paths.
package fieldpath
