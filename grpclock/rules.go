package grpclock

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/reqlock/reqlock/internal/adapter/protomsg"
	"github.com/reqlock/reqlock/internal/adapter/registration"
	"github.com/reqlock/reqlock/internal/annotated"
)

// Rules are the locks and the idempotency of methods, as their .proto files declare them. Annotated
// makes Rules. They are safe for concurrent use.
type Rules struct {
	methods []*annotated.Method
	sources map[string]Key
	inCode  []*protomsg.Methods
	made    interceptorsMade
}

// Annotated reads the rules that the .proto files of services declare, by the options of
// reqlock/v1/annotations.proto:
//
//	rpc Transfer(TransferRequest) returns (TransferReply) {
//	  option (reqlock.v1.method) = {
//	    lock { name: "account" key { field: "account.id" } wait { seconds: 2 } }
//	    idempotent { key { source: "user" } key { field: "request_id" } optional: true }
//	  };
//	}
//
// The options are the parts that a .proto file cannot have: see Source and InCode.
//
//	rules := grpclock.Annotated([]*grpc.ServiceDesc{&pb.Bank_ServiceDesc},
//		grpclock.Source("user", grpclock.ContextValue(userKey{})))
//	grpc.NewServer(append(options, rules.ServerOptions(locks)...)...)
//
// Methods of other services pass the interceptors without a lock. So do methods that declare
// nothing: see Undeclared, and must_declare in the file.
//
// Annotated panics with the error of AnnotatedErr.
func Annotated(services []*grpc.ServiceDesc, opts ...RuleOption) *Rules {
	r, err := AnnotatedErr(services, opts...)
	if err != nil {
		panic(err)
	}
	return r
}

// AnnotatedErr is Annotated with an error, which joins all mistakes of all services. Each has the
// file, the service or the method, the rule and what is wrong:
//
//	reqlock: bank/v1/bank.proto: bank.v1.Bank.Transfer: lock 2: key: field "to.idd": bank.v1.Account has no field "idd"
//
// Mistakes are the same as in Go code: a field that does not exist, or that is no key; a source
// that is not given, or that reads another message; an invalid name; a duration outside the
// limits of its option. Others are a stream or a method without side effects that is idempotent,
// a lock that a method declares twice, a method that is locked by ByMethod too, an option with the
// number of the rules that the program does not know, and a service whose descriptor is not in the
// program (protoregistry.GlobalFiles).
func AnnotatedErr(services []*grpc.ServiceDesc, opts ...RuleOption) (*Rules, error) {
	code := &ruleCode{sources: make(map[string]Key)}
	for _, opt := range opts {
		registration.Must(self, opt.add != nil, "Annotated: an option is empty")
		opt.add(code)
	}
	descriptors, faults := descriptorsOf(services)
	methods, err := annotated.Read(descriptors, code.program())
	r := &Rules{methods: methods, sources: code.sources, inCode: code.inCode}
	faults = append(faults, code.faults...)
	if err := errors.Join(append(faults, err, r.checkSources())...); err != nil {
		return nil, err
	}
	return r, nil
}

// descriptorsOf returns the descriptors of services.
func descriptorsOf(services []*grpc.ServiceDesc) (found []protoreflect.ServiceDescriptor, faults []error) {
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("reqlock: grpclock: Annotated: "+format, args...))
	}
	if len(services) == 0 {
		fault("there is no service")
	}
	for _, service := range services {
		if service == nil {
			fault("a service is nil")
			continue
		}
		linked, _ := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service.ServiceName))
		descriptor, ok := linked.(protoreflect.ServiceDescriptor)
		switch {
		case !ok:
			fault("this program has no descriptor of the service %q", service.ServiceName)
		case slices.Contains(found, descriptor):
			fault("the service %q is given twice", service.ServiceName)
		default:
			found = append(found, descriptor)
		}
	}
	return found, faults
}

// A Rule is one line of the table of all rules: what a method declares, or that it declares
// nothing. Its fields are texts: Method, "/pkg.Service/Method"; Kind, which is "lock",
// "idempotent", "unlocked", "in code" or "undeclared"; the Name of a lock; the Key, as in: field
// "from.id"; and the Settings of the file, as in: wait 2s, ttl 30s. String is one line for a log.
type Rule = annotated.Rule

// All returns the table of all rules, for logs and reviews: one line for each lock, and at least
// one for each method of the services.
func (r *Rules) All() iter.Seq[Rule] {
	return func(yield func(Rule) bool) {
		for _, m := range r.methods {
			for _, line := range m.Rules() {
				if !yield(line) {
					return
				}
			}
		}
	}
}

// Undeclared returns the full methods of the services that declare nothing, and that InCode does
// not name. Their calls run without a lock.
func (r *Rules) Undeclared() []string {
	var names []string
	for _, m := range r.methods {
		if !m.IsDeclared() {
			names = append(names, m.FullMethod())
		}
	}
	return names
}
