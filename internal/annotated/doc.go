// Package annotated reads the rules that .proto files declare for the methods of their services,
// by the options of annotations/reqlock/v1/annotations.proto. It depends on the descriptors of
// services alone, and on no framework, so protolock and the command lint share it.
//
// It finds all mistakes of all services, and returns them as one error. Each has the file, the
// service or method, the rule and what is wrong. A line is not known, because the descriptors in
// generated code do not have the lines.
package annotated
