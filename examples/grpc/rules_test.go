package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	pb "github.com/reqlock/reqlock/examples/grpc/bank/v1"
)

// The rules are those of bank.proto, and no method is left out.
func TestRulesOfTheFile(t *testing.T) {
	t.Parallel()
	rules := rulesOfBank()
	var got []string
	for rule := range rules.All() {
		got = append(got, rule.String())
	}
	want := []string{
		`/bank.v1.Bank/Balance: unlocked`,
		`/bank.v1.Bank/Transfer: lock account: field "account.id": wait 0s`,
		`/bank.v1.Bank/Transfer: lock account: field "payee.id": wait 0s`,
		`/bank.v1.Bank/Transfer: idempotent: source "user" + field "request_id": optional, wait 5s`,
		`/bank.v1.Bank/Settle: lock account: field "account.id": wait 5s`,
		`/bank.v1.Bank/Settle: lock account: field "payee.id": wait 5s`,
		`/bank.v1.Bank/PlaceOrder: lock user: source "user": wait 5s`,
		`/bank.v1.Bank/Deposit: lock account: field "account.id": wait 5s`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if left := rules.Undeclared(); len(left) > 0 {
		t.Errorf("%q declare nothing", left)
	}
}

// The command lint checks the descriptors that protoc writes, of which the program has a copy.
func TestLint(t *testing.T) {
	t.Parallel()
	set := &descriptorpb.FileDescriptorSet{}
	addFile(set, pb.File_bank_v1_bank_proto)
	text, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "set.binpb")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	command := filepath.Join(t.TempDir(), "reqlock")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", command, "github.com/reqlock/reqlock/cmd/reqlock")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lint := func(source string) ([]byte, error) {
		return exec.CommandContext(t.Context(), command, "lint", "--descriptor_set", file, "--source", source).CombinedOutput()
	}
	if out, err := lint("user"); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := lint("tenant"); err == nil {
		t.Errorf("a source that is not given passes: %s", out)
	}
}

// addFile adds a file behind its imports.
func addFile(set *descriptorpb.FileDescriptorSet, file protoreflect.FileDescriptor) {
	for i := range file.Imports().Len() {
		addFile(set, file.Imports().Get(i))
	}
	if !slices.ContainsFunc(set.File, func(f *descriptorpb.FileDescriptorProto) bool { return f.GetName() == file.Path() }) {
		set.File = append(set.File, protodesc.ToFileDescriptorProto(file))
	}
}
