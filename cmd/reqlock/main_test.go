package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/reqlock/reqlock/internal/testkit/annotatedtest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// childEnv makes the test binary run as the command.
const childEnv = "REQLOCK_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		main()
	}
	suite.Main(m)
}

// writeSet writes a descriptor set with an annotated service, and returns the file.
func writeSet(t *testing.T, methods map[string]string, withImports bool) string {
	t.Helper()
	service := annotatedtest.Service{
		Of:   pb.File_grpc_testing_test_proto.Services().ByName("TestService"),
		File: "case/v1/case.proto", Package: "case.v1", Methods: methods,
	}
	set := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{service.Proto(t)}}
	if withImports {
		annotations := &descriptorpb.FileDescriptorProto{Name: proto.String("reqlock/v1/annotations.proto"), Syntax: proto.String("proto3")}
		set.File = append(set.File, annotations)
		for _, file := range []protoreflect.FileDescriptor{pb.File_grpc_testing_messages_proto, pb.File_grpc_testing_empty_proto} {
			set.File = append(set.File, protodesc.ToFileDescriptorProto(file))
		}
	}
	text, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "set.binpb")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// command runs the command in a process of its own.
func command(t *testing.T, args ...string) (status int, out, problems string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

func TestLint(t *testing.T) {
	t.Parallel()
	right := writeSet(t, map[string]string{
		"UnaryCall": `lock { name: "account" key { source: "user" } key { field: "response_status.message" } wait { seconds: 2 } }`,
		"EmptyCall": `unlocked: true`,
	}, true)
	wrong := writeSet(t, map[string]string{
		"UnaryCall":      `lock { key { field: "id" } }`,
		"FullDuplexCall": `idempotent { key { source: "usr" } }`,
	}, true)
	garbage := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(garbage, []byte("\xff\xff"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args   []string
		status int
		out    string // its beginning; "": no output
		says   string // in the standard error; "": no output
	}{
		"right":                {[]string{"lint", "--descriptor_set", right, "--source", "user"}, 0, "", ""},
		"right, other sources": {[]string{"lint", "-descriptor_set=" + right}, 0, "sources, whose names were not checked: user\n", ""},
		"a source, not given": {
			[]string{"lint", "--descriptor_set", right, "--source", "tenant", "--source", "account"},
			1,
			`reqlock: case/v1/case.proto: case.v1.TestService.UnaryCall: lock 1: key: source "user": there is no such source; given are "tenant", "account"` + "\n", "",
		},
		"table": {[]string{"lint", "--descriptor_set", right, "--source", "user", "--table"}, 0, "METHOD", ""},
		"wrong": {[]string{"lint", "--descriptor_set", wrong}, 1, `reqlock: case/v1/case.proto: case.v1.TestService.UnaryCall: lock 1: key: field "id": grpc.testing.SimpleRequest has no field "id"
reqlock: case/v1/case.proto: case.v1.TestService.FullDuplexCall: idempotent: the method is a stream, and streams are not idempotent
`, ""},
		"no rules":     {[]string{"lint", "--descriptor_set", writeSet(t, nil, true)}, 1, "reqlock: lint: ", ""},
		"no imports":   {[]string{"lint", "--descriptor_set", writeSet(t, nil, false)}, 2, "", "--include_imports"},
		"no such file": {[]string{"lint", "--descriptor_set", "none"}, 2, "", "no such file"},
		"no set":       {[]string{"lint", "--descriptor_set", garbage}, 2, "", "is no descriptor set"},
		"an empty set": {[]string{"lint", "--descriptor_set", os.DevNull}, 2, "", "has no service"},
		"no flag":      {[]string{"lint"}, 2, "", "--descriptor_set is missing"},
		"an argument":  {[]string{"lint", "--descriptor_set", right, "more"}, 2, "", `"more" is no flag`},
		"another flag": {[]string{"lint", "--descriptor", right}, 2, "", "flag provided but not defined: -descriptor"},
		"no command":   {nil, 2, "", "usage: reqlock lint"},
		"another one":  {[]string{"check"}, 2, "", `there is no command "check"`},
		"help":         {[]string{"lint", "-h"}, 0, "", "-source NAME"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, out, problems := command(t, test.args...)
			if status != test.status || !strings.HasPrefix(out, test.out) || test.out == "" && out != "" ||
				!strings.Contains(problems, test.says) || test.says == "" && problems != "" {
				t.Errorf("status %d\nout: %s\nproblems: %s", status, out, problems)
			}
		})
	}
}

// The table has a line for each rule, and for each method without one.
func TestTableOfLint(t *testing.T) {
	t.Parallel()
	set := writeSet(t, map[string]string{
		"UnaryCall": `lock { name: "account" key { source: "user" } wait { seconds: 2 } }`,
		"EmptyCall": `unlocked: true`,
	}, true)
	_, out, _ := command(t, "lint", "--descriptor_set", set, "--table", "--source", "user")
	var got []string
	for line := range strings.Lines(out) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"METHOD RULE NAME KEY SETTINGS",
		"/case.v1.TestService/EmptyCall unlocked",
		`/case.v1.TestService/UnaryCall lock account source "user" wait 2s`,
		"/case.v1.TestService/CacheableUnaryCall undeclared",
	}
	if len(got) != 9 || strings.Join(got[:4], "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", out)
	}
}
