package reqlockv1_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/reqlock/reqlock/annotations/reqlockv1"
)

// root is the module, seen from this package.
const root = ".."

// look returns the path of a command, and skips the test on a machine without it. In CI the test
// fails then.
func look(t *testing.T, command string) string {
	t.Helper()
	found, err := exec.LookPath(command)
	if err != nil {
		if os.Getenv("REQLOCK_REQUIRE_REDIS") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return found
}

// run runs a command in a folder.
func run(t *testing.T, dir, command string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), command, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
}

// built is the folder of the plugin, and build builds the plugin once.
var (
	built string
	build sync.Once
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "reqlockv1")
	if err != nil {
		panic(err)
	}
	built = dir
	status := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

// plugin returns the path of protoc-gen-go, of the version that go.mod requires.
func plugin(t *testing.T) string {
	t.Helper()
	path := filepath.Join(built, "protoc-gen-go")
	build.Do(func() { run(t, root, "go", "build", "-o", path, "google.golang.org/protobuf/cmd/protoc-gen-go") })
	return path
}

// write writes files into a new folder, and returns the folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// read returns the text of a file.
func read(t *testing.T, elements ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Compiled files have the number and the names of the options, so they must never change.
func TestNumbersAndNamesOfTheOptions(t *testing.T) {
	for _, option := range []struct {
		protoreflect.ExtensionType
		name, extends string
	}{
		{reqlockv1.E_Method, "reqlock.v1.method", "google.protobuf.MethodOptions"},
		{reqlockv1.E_Service, "reqlock.v1.service", "google.protobuf.ServiceOptions"},
	} {
		d := option.TypeDescriptor()
		if d.Number() != 50917 || string(d.FullName()) != option.name || string(d.ContainingMessage().FullName()) != option.extends {
			t.Errorf("the option is %s of %s with the number %d", d.FullName(), d.ContainingMessage().FullName(), d.Number())
		}
	}
}

// version matches the line of a version in generated code.
var version = regexp.MustCompile(`(?m)^// \tproto.*\n`)

// The Go code is that of the .proto file. go generate writes it again.
func TestTheCodeIsThatOfTheFile(t *testing.T) {
	protoc, out := look(t, "protoc"), t.TempDir()
	run(t, root, protoc, "--plugin=protoc-gen-go="+plugin(t), "-I", ".", "--go_out="+out,
		"--go_opt=module=github.com/reqlock/reqlock/annotations", "reqlock/v1/annotations.proto")
	now, kept := read(t, out, "reqlockv1", "annotations.pb.go"), read(t, "annotations.pb.go")
	if version.ReplaceAllString(now, "") != version.ReplaceAllString(kept, "") {
		t.Error("annotations.pb.go is not the code of annotations.proto: run go generate")
	}
}

// A bankProto is a file of a user.
const bankProto = `syntax = "proto3";
package bank.v1;
import "reqlock/v1/annotations.proto";
option go_package = "example.com/bank/v1;bankv1";
service Bank {
  option (reqlock.v1.service) = { must_declare: true };
  rpc Transfer(TransferRequest) returns (TransferReply) {
    option (reqlock.v1.method) = {
      lock { name: "account" key { field: "from" } wait { seconds: 2 } }
      lock { name: "account" key { field: "to" } permits: 5 }
      idempotent { key { source: "user" } key { field: "request_id" } optional: true }
    };
  }
}
message TransferRequest {
  string from = 1;
  string to = 2;
  string request_id = 3;
}
message TransferReply {}
`

// vendored are the files of a user who has copied annotations.proto.
func vendored(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"proto/bank/v1/bank.proto":                 bankProto,
		"third_party/reqlock/v1/annotations.proto": read(t, root, "reqlock", "v1", "annotations.proto"),
		"buf.yaml":     "version: v2\nmodules:\n  - path: proto\n  - path: third_party\n",
		"buf.gen.yaml": "version: v2\ninputs:\n  - directory: proto\nplugins:\n  - local: " + plugin(t) + "\n    out: gen\n    opt: paths=source_relative\n",
	}
}

// wantRules fails the test unless a compiled descriptor set has the rules of bankProto.
func wantRules(t *testing.T, encoded string) {
	t.Helper()
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal([]byte(encoded), set); err != nil {
		t.Fatal(err)
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		t.Fatal(err)
	}
	d, err := files.FindDescriptorByName("bank.v1.Bank.Transfer")
	if err != nil {
		t.Fatal(err)
	}
	rules, _ := proto.GetExtension(d.Options(), reqlockv1.E_Method).(*reqlockv1.MethodRules)
	if len(rules.GetLock()) != 2 || rules.GetLock()[0].GetWait().GetSeconds() != 2 || rules.GetLock()[1].GetPermits() != 5 ||
		rules.GetIdempotent().GetKey()[1].GetField() != "request_id" {
		t.Errorf("the rules are %v", rules)
	}
	service, _ := proto.GetExtension(d.Parent().Options(), reqlockv1.E_Service).(*reqlockv1.ServiceRules)
	if !service.GetMustDeclare() {
		t.Errorf("the rules of the service are %v", service)
	}
}

// wantImport fails the test unless generated code imports this package, and not a copy of it.
func wantImport(t *testing.T, code string) {
	t.Helper()
	if !strings.Contains(code, `_ "github.com/reqlock/reqlock/annotations/reqlockv1"`) {
		t.Error("the generated code does not import reqlockv1")
	}
}

func TestProtocCompilesACopyOfTheFile(t *testing.T) {
	protoc, dir := look(t, "protoc"), write(t, vendored(t))
	run(t, dir, protoc, "--plugin=protoc-gen-go="+plugin(t), "-I", "proto", "-I", "third_party", "--go_out=.", "--go_opt=paths=source_relative",
		"--include_imports", "--descriptor_set_out=set.binpb", "bank/v1/bank.proto")
	wantImport(t, read(t, dir, "bank", "v1", "bank.pb.go"))
	wantRules(t, read(t, dir, "set.binpb"))
}

func TestBufCompilesACopyOfTheFile(t *testing.T) {
	buf, dir := look(t, "buf"), write(t, vendored(t))
	run(t, dir, buf, "generate")
	run(t, dir, buf, "build", "-o", "set.binpb")
	wantImport(t, read(t, dir, "gen", "bank", "v1", "bank.pb.go"))
	wantRules(t, read(t, dir, "set.binpb"))
}
