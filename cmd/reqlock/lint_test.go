package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/reqlock/reqlock/internal/testkit/annotatedtest"
)

// A set is a descriptor set with one service.
type set struct {
	rules   string            // of the service
	methods map[string]string // the rules of methods
	// options is the file that declares the options; nil: reqlock/v1/annotations.proto.
	options *descriptorpb.FileDescriptorProto
	// withoutImports leaves out all other files.
	withoutImports bool
	// edit changes the file of the service; nil: nothing.
	edit func(*descriptorpb.FileDescriptorProto)
}

// write writes the set, and returns the file.
func (s set) write(t *testing.T) string {
	t.Helper()
	if s.options == nil {
		s.options = annotatedtest.Options("reqlock/v1/annotations.proto", "reqlock.v1")
	}
	service := annotatedtest.Service{
		Of:   pb.File_grpc_testing_test_proto.Services().ByName("TestService"),
		File: "case/v1/case.proto", Package: "case.v1", Rules: s.rules, Methods: s.methods, WithoutImport: true,
	}.Proto(t)
	service.Dependency = append(service.Dependency, s.options.GetName())
	if s.edit != nil {
		s.edit(service)
	}
	files := []*descriptorpb.FileDescriptorProto{service}
	if !s.withoutImports {
		files = append(files, s.options)
		for _, file := range []protoreflect.FileDescriptor{
			descriptorpb.File_google_protobuf_descriptor_proto, durationpb.File_google_protobuf_duration_proto,
			pb.File_grpc_testing_messages_proto, pb.File_grpc_testing_empty_proto,
		} {
			files = append(files, protodesc.ToFileDescriptorProto(file))
		}
	}
	text, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: files})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "set.binpb")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestLint(t *testing.T) {
	t.Parallel()
	rules := map[string]string{
		"UnaryCall": `lock { name: "account" key { source: "user" } key { field: "response_status.message" } wait { seconds: 2 } }`,
		"EmptyCall": `unlocked: true`,
	}
	right := set{methods: rules}.write(t)
	wrong := set{methods: map[string]string{
		"UnaryCall":      `lock { key { field: "id" } }`,
		"FullDuplexCall": `idempotent { key { source: "usr" } }`,
	}}.write(t)
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
		"right, other sources": {[]string{"lint", "-descriptor_set=" + right}, 0, `sources, whose names were not checked: "user"` + "\n", ""},
		"a source, not given": {
			[]string{"lint", "--descriptor_set", right, "--source", "tenant", "--source", "account"},
			1,
			`reqlock: case/v1/case.proto: case.v1.TestService.UnaryCall: lock 1: key: source "user": there is no such source; given are "tenant", "account"` + "\n", "",
		},
		"table": {[]string{"lint", "--descriptor_set", right, "--source", "user", "--table"}, 0, "METHOD", ""},
		"wrong": {[]string{"lint", "--descriptor_set", wrong}, 1, `reqlock: case/v1/case.proto: case.v1.TestService.UnaryCall: lock 1: key: field "id": grpc.testing.SimpleRequest has no field "id"
reqlock: case/v1/case.proto: case.v1.TestService.FullDuplexCall: idempotent: the method is a stream, and streams are not idempotent
`, ""},
		"no rules":     {[]string{"lint", "--descriptor_set", set{}.write(t)}, 1, "reqlock: lint: ", ""},
		"no imports":   {[]string{"lint", "--descriptor_set", set{withoutImports: true}.write(t)}, 2, "", "--include_imports"},
		"no such file": {[]string{"lint", "--descriptor_set", "none"}, 2, "", "no such file"},
		"no set":       {[]string{"lint", "--descriptor_set", garbage}, 2, "", "is no descriptor set"},
		"an empty set": {[]string{"lint", "--descriptor_set", os.DevNull}, 2, "", "has no service"},
		"no flag":      {[]string{"lint"}, 2, "", "--descriptor_set is missing"},
		"an argument":  {[]string{"lint", "--descriptor_set", right, "more"}, 2, "", `"more" is one argument too many`},
		"another flag": {[]string{"lint", "--descriptor", right}, 2, "", "flag provided but not defined: -descriptor\nusage: reqlock lint"},
		"help":         {[]string{"lint", "-h"}, 0, "usage: reqlock lint --descriptor_set FILE", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, out, problems := runChild(t, test.args...)
			if status != test.status || !strings.HasPrefix(out, test.out) || test.out == "" && out != "" ||
				!strings.Contains(problems, test.says) || test.says == "" && problems != "" {
				t.Errorf("status %d\nout: %s\nproblems: %s", status, out, problems)
			}
		})
	}
}

// A descriptor set may come from anybody, so what it names is printed without terminal escapes
// and without line breaks.
func TestLintPrintsNoTerminalEscapes(t *testing.T) {
	t.Parallel()
	const escape = "x\x1b[2J\rx\nreqlock: "
	source := func(more string) map[string]string {
		return map[string]string{"UnaryCall": `lock { key { source: ` + strconv.Quote(escape) + ` } ` + more + `}`}
	}
	for name, s := range map[string]set{
		"a source":           {methods: source("")},
		"a mistake":          {methods: source(`permits: 1 shared: true`)},
		"a lock's name":      {methods: source(`name: ` + strconv.Quote(escape))},
		"a field":            {methods: map[string]string{"UnaryCall": `lock { key { field: ` + strconv.Quote(escape) + ` } }`}},
		"metadata":           {methods: map[string]string{"UnaryCall": `lock { key { metadata: ` + strconv.Quote(escape) + ` } }`}},
		"a file":             {methods: source(`permits: 1 shared: true`), edit: func(f *descriptorpb.FileDescriptorProto) { f.Name = proto.String(escape) }},
		"a file, no mistake": {methods: source(""), edit: func(f *descriptorpb.FileDescriptorProto) { f.Name = proto.String(escape) }},
		"an import":          {methods: source(""), edit: func(f *descriptorpb.FileDescriptorProto) { f.Dependency = append(f.Dependency, escape) }},
		"a package":          {methods: source(""), edit: func(f *descriptorpb.FileDescriptorProto) { f.Package = proto.String(escape) }},
		"a method":           {methods: source(""), edit: func(f *descriptorpb.FileDescriptorProto) { f.Service[0].Method[0].Name = proto.String(escape) }},
		"a message":          {methods: source(""), edit: func(f *descriptorpb.FileDescriptorProto) { f.Service[0].Method[0].InputType = proto.String(escape) }},
	} {
		file := s.write(t)
		for _, args := range [][]string{{"--table"}, {"--source", "user"}} {
			_, out, problems := runChild(t, append([]string{"lint", "--descriptor_set", file}, args...)...)
			if strings.ContainsAny(out+problems, "\x1b\r") || strings.Contains(out+problems, "x\nreqlock: ") {
				t.Errorf("%s, %v:\nout: %q\nproblems: %q", name, args, out, problems)
			}
		}
	}
}

// The table has a line for each rule, and for each method without one.
func TestTableOfLint(t *testing.T) {
	t.Parallel()
	file := set{methods: map[string]string{
		"UnaryCall": `lock { name: "account" key { source: "user" } wait { seconds: 2 } }`,
		"EmptyCall": `unlocked: true`,
	}}.write(t)
	_, out, _ := runChild(t, "lint", "--descriptor_set", file, "--table", "--source", "user")
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

// Each --in_code names a method whose lock is in code: it counts as declared.
func TestLintKnowsMethodsInCode(t *testing.T) {
	t.Parallel()
	file := set{rules: `must_declare: true`, methods: map[string]string{
		"UnaryCall": `lock { key { literal: "a" } }`, "EmptyCall": `unlocked: true`, "UnimplementedCall": `unlocked: true`,
		"StreamingOutputCall": `unlocked: true`, "StreamingInputCall": `unlocked: true`, "FullDuplexCall": `unlocked: true`,
	}}.write(t)
	inCode := func(methods ...string) []string {
		args := []string{"lint", "--descriptor_set", file}
		for _, method := range methods {
			args = append(args, "--in_code", method)
		}
		return args
	}
	const service = "/case.v1.TestService/"
	const cached, duplex = service + "CacheableUnaryCall", service + "HalfDuplexCall"
	const undeclared = ": it declares nothing, and must_declare of the service demands a rule: write lock, idempotent or unlocked\n"
	for name, test := range map[string]struct {
		args          []string
		status        int
		out, problems string
	}{
		"all": {inCode(cached, duplex), 0, "", ""},
		"one": {inCode(duplex), 1, "reqlock: case/v1/case.proto: case.v1.TestService.CacheableUnaryCall" + undeclared, ""},
		"one that is declared, too": {
			inCode(cached, duplex, service+"UnaryCall"),
			1, "reqlock: case/v1/case.proto: case.v1.TestService.UnaryCall: a ByMethod of the program locks it, too: keep one of them\n", "",
		},
		"no method": {
			inCode(cached, service+"Other"), 2, "",
			"reqlock: lint: --in_code: " + file + ` has no method "/case.v1.TestService/Other"` + "\n",
		},
	} {
		status, out, problems := runChild(t, test.args...)
		if status != test.status || out != test.out || problems != test.problems {
			t.Errorf("%s: status %d\nout: %s\nproblems: %s", name, status, out, problems)
		}
	}
	_, out, _ := runChild(t, append(inCode(cached, duplex), "--table")...)
	if n := strings.Count(out, "in code"); n != 2 {
		t.Errorf("%d lines of the table are in code\n%s", n, out)
	}
}

// lint knows the options by their names, whatever path the copy of annotations.proto has. Another
// option with the same number is no rule.
func TestLintKnowsTheOptionsByName(t *testing.T) {
	t.Parallel()
	rules := map[string]string{"UnaryCall": `lock { key { field: "id" } }`}
	importOption := func(service *descriptorpb.FileDescriptorProto) {
		service.Syntax, service.Edition = proto.String("editions"), descriptorpb.Edition_EDITION_2024.Enum()
		last := len(service.GetDependency()) - 1
		service.OptionDependency, service.Dependency = service.GetDependency()[last:], service.GetDependency()[:last]
	}
	const mistake = "reqlock: case/v1/case.proto: case.v1.TestService.UnaryCall: lock 1: key: field \"id\": grpc.testing.SimpleRequest has no field \"id\"\n"
	for name, test := range map[string]struct {
		set  set
		want string
	}{
		"another path":    {set{methods: rules, options: annotatedtest.Options("locks.proto", "reqlock.v1")}, mistake},
		"import option":   {set{methods: rules, edit: importOption}, mistake},
		"both":            {set{methods: rules, edit: importOption, options: annotatedtest.Options("locks.proto", "reqlock.v1")}, mistake},
		"another option":  {set{methods: rules, options: annotatedtest.Options("audit.proto", "audit.v1")}, "no method declares anything\n"},
		"another, option": {set{methods: rules, edit: importOption, options: annotatedtest.Options("audit.proto", "audit.v1")}, "no method declares anything\n"},
	} {
		status, out, problems := runChild(t, "lint", "--descriptor_set", test.set.write(t))
		if status != 1 || !strings.HasSuffix(out, test.want) || problems != "" {
			t.Errorf("%s: status %d\nout: %s\nproblems: %s", name, status, out, problems)
		}
	}
}
