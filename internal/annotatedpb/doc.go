// Package annotatedpb has the messages of the options that annotations/reqlock/v1/annotations.proto
// declares, under other names. The main module reads the options as these messages. So it does
// not need the module annotations, and a program may have its own Go code of that file: the
// registry of protobuf refuses two files of one name, and two messages of one name.
//
// After a change of annotations.proto, install protoc and protoc-gen-go, and run go generate. A
// test compares the two files.
package annotatedpb

//go:generate sh -c "sed -i '/^.. MethodRules/,$DOLLAR{d}' rules.proto && sed -n '/^.. MethodRules/,$DOLLAR{p}' ../../annotations/reqlock/v1/annotations.proto >> rules.proto"
//go:generate protoc --go_out=. --go_opt=paths=source_relative rules.proto
