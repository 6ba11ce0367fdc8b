package annotated_test

import (
	"slices"
	"testing"

	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/reqlock/reqlock/internal/annotated"
	"github.com/reqlock/reqlock/internal/testkit/annotatedtest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// service returns an annotated service, with these rules of methods.
func service(methods map[string]string) annotatedtest.Service {
	return annotatedtest.Service{
		Of:      pb.File_grpc_testing_test_proto.Services().ByName("TestService"),
		File:    "case/v1/case.proto",
		Package: "case.v1",
		Methods: methods,
	}
}

// read reads one service. The program has the source "user".
func read(t *testing.T, s annotatedtest.Service) ([]*annotated.Method, error) {
	t.Helper()
	services := []protoreflect.ServiceDescriptor{s.Descriptor(t)}
	return annotated.Read(services, annotated.Program{Sources: []string{"user"}, InCode: []string{"/case.v1.TestService/CacheableUnaryCall"}})
}

// methodOf returns a method of the results.
func methodOf(t *testing.T, methods []*annotated.Method, name protoreflect.Name) *annotated.Method {
	t.Helper()
	for _, m := range methods {
		if m.Descriptor.Name() == name {
			return m
		}
	}
	t.Fatalf("there is no method %s", name)
	return nil
}

// The table of rules shows where keys come from, and the durations. Those of a method override
// those of its service.
func TestRules(t *testing.T) {
	t.Parallel()
	s := service(map[string]string{
		"UnaryCall": `
			lock { name: "account" key { source: "user" } key { field: "response_status.message" } }
			lock { key { literal: "all" } wait { seconds: 5 } }
			idempotent { name: "payments" key { source: "user" } key { metadata: "idempotency-key" } optional: true retention { seconds: 60 } }`,
		"StreamingInputCall": `lock { key { metadata: "x-account" } ttl { seconds: 1 } permits: 5 } lock { key { literal: "b" } shared: true }`,
		"EmptyCall":          `unlocked: true`,
	})
	s.Rules = `wait { seconds: 2 } ttl { seconds: 30 }`
	methods, err := read(t, s)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range methods {
		for _, rule := range m.Rules() {
			got = append(got, rule.String())
		}
	}
	want := []string{
		`/case.v1.TestService/EmptyCall: unlocked`,
		`/case.v1.TestService/UnaryCall: lock account: source "user" + field "response_status.message": wait 5s, ttl 30s`,
		`/case.v1.TestService/UnaryCall: lock: literal "all": wait 5s, ttl 30s`,
		`/case.v1.TestService/UnaryCall: idempotent payments: source "user" + metadata "idempotency-key": optional, wait 2s, ttl 30s, retention 1m0s`,
		`/case.v1.TestService/CacheableUnaryCall: in code`,
		`/case.v1.TestService/StreamingOutputCall: undeclared`,
		`/case.v1.TestService/StreamingInputCall: lock: metadata "x-account": permits 5, wait 2s, ttl 1s`,
		`/case.v1.TestService/StreamingInputCall: lock: literal "b": shared, wait 2s, ttl 1s`,
		`/case.v1.TestService/FullDuplexCall: undeclared`,
		`/case.v1.TestService/HalfDuplexCall: undeclared`,
		`/case.v1.TestService/UnimplementedCall: undeclared`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	if n := len(methodOf(t, methods, "UnaryCall").Idempotent.Options()); n != 4 {
		t.Errorf("%d options, want those of wait, ttl, retention and name", n)
	}
}

func TestKindsOfMethods(t *testing.T) {
	t.Parallel()
	methods, err := read(t, service(nil))
	if err != nil {
		t.Fatal(err)
	}
	var streams []string
	for _, m := range methods {
		if m.IsStream() {
			streams = append(streams, string(m.Descriptor.Name()))
		}
	}
	if want := []string{"StreamingOutputCall", "StreamingInputCall", "FullDuplexCall", "HalfDuplexCall"}; !slices.Equal(streams, want) {
		t.Errorf("the streams are %q", streams)
	}
}
