package protolock_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"

	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/internal/testkit/annotatedtest"
)

// annotatedBanks counts the annotated copies of the bank, which need different names.
var annotatedBanks atomic.Int64

// An annotatedBank is a copy of the service Bank with annotations.
type annotatedBank struct {
	protoreflect.ServiceDescriptor
	desc *grpc.ServiceDesc
}

// annotate returns a copy of the service Bank with these rules of the service and its methods.
func annotate(tb testing.TB, rules string, methods map[string]string) annotatedBank {
	tb.Helper()
	n := annotatedBanks.Add(1)
	d := annotatedtest.Service{
		Of:      pb.File_bank_proto.Services().ByName("Bank"),
		File:    fmt.Sprintf("copy%d/bank.proto", n),
		Package: fmt.Sprintf("copy%d", n),
		Rules:   rules,
		Methods: methods,
	}.Register(tb)
	return annotatedBank{d, annotatedtest.Desc(pb.Bank_ServiceDesc, d)}
}

// method returns the full name of a method.
func (a annotatedBank) method(name string) string { return fmt.Sprintf("/%s/%s", a.FullName(), name) }

// descs returns the service in a list.
func (a annotatedBank) descs() []*grpc.ServiceDesc { return []*grpc.ServiceDesc{a.desc} }

// serveAnnotated serves copies of the bank, and returns a client of each.
func serveAnnotated(t *testing.T, b *bank, banks []annotatedBank, opts ...grpc.ServerOption) []pb.BankClient {
	t.Helper()
	conn := connect(t, func(s *grpc.Server) {
		for _, a := range banks {
			s.RegisterService(a.desc, b)
		}
	}, opts...)
	clients := make([]pb.BankClient, len(banks))
	for i, a := range banks {
		clients[i] = pb.NewBankClient(annotatedtest.Conn(conn, pb.Bank_ServiceDesc, a))
	}
	return clients
}
