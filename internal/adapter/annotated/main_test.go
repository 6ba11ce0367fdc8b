package annotated_test

import (
	"testing"

	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/reqlock/reqlock/internal/adapter/annotated"
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
