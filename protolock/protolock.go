package protolock

import (
	"errors"
	"iter"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/adapter/protomsg"
	"github.com/reqlock/reqlock/grpclock"
)

// self is the name of this package in errors.
const self = adapter.Name("protolock")

// Rules are the locks and the idempotency of methods, as their .proto files declare them. New
// makes Rules. They are safe for concurrent use.
type Rules struct {
	methods []protomsg.Rule[*grpclock.Call]
	inCode  []*protomsg.Methods
	made    interceptorsMade
}

// New reads the rules that the .proto files of services declare, by the options of
// reqlock/v1/annotations.proto. The options of New are the parts that a .proto file cannot have: see
// Source and InCode.
//
// Methods of other services pass the interceptors without a lock. So do methods that declare
// nothing: see Undeclared, and must_declare in the file.
//
// The error joins all mistakes of all services. Each has the file, the service or the method, the
// rule and what is wrong:
//
//	reqlock: bank/v1/bank.proto: bank.v1.Bank.Transfer: lock 2: key: field "to.idd": bank.v1.Account has no field "idd"
//
// Mistakes are the same as in Go code: a field that does not exist, or that is no key; a source
// that is not given, or that reads another message; an invalid name; a duration outside the
// limits of its option. Others are a stream or a method without side effects that is idempotent,
// a lock that a method declares twice, a method that is locked by ByMethod too, an option with the
// number of the rules that the program does not know, and a service whose descriptor is not in the
// program (protoregistry.GlobalFiles).
func New(services []*grpc.ServiceDesc, opts ...Option) (*Rules, error) {
	code := &ruleCode{sources: make(map[string]grpclock.Key)}
	for _, opt := range opts {
		if opt.add == nil {
			code.faultf("an option is empty")
			continue
		}
		opt.add(code)
	}
	methods, err := protomsg.ReadRules(code.descriptorsOf(services), code.parts())
	if err := errors.Join(append(code.faults, err)...); err != nil {
		return nil, err
	}
	return &Rules{methods: methods, inCode: code.inCode}, nil
}

// Must returns the Rules of New, and panics with the error if there is one.
func Must(r *Rules, err error) *Rules { return adapter.Must(r, err) }

// A Rule is one line of the table of all rules: what a method declares, or that it declares
// nothing. Its fields are texts: Method, "/pkg.Service/Method"; Kind, which is "lock",
// "idempotent", "unlocked", "in code" or "undeclared"; the Name of a lock or of idempotent calls;
// the Key, as in: field "from.id"; and the Settings of the file, as in: wait 2s, ttl 30s. String is
// one line for a log.
type Rule = protomsg.Line

// All returns the table of all rules, for logs and reviews: one line for each lock, and at least
// one for each method of the services.
func (r *Rules) All() iter.Seq[Rule] {
	return func(yield func(Rule) bool) {
		for _, m := range r.methods {
			for _, line := range m.Lines() {
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

// descriptorsOf returns the descriptors of services.
func (code *ruleCode) descriptorsOf(services []*grpc.ServiceDesc) (found []protoreflect.ServiceDescriptor) {
	if len(services) == 0 {
		code.faultf("there is no service")
	}
	for _, service := range services {
		if service == nil {
			code.faultf("a service is nil")
			continue
		}
		linked, _ := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service.ServiceName))
		descriptor, ok := linked.(protoreflect.ServiceDescriptor)
		switch {
		case !ok:
			code.faultf("this program has no descriptor of the service %q", service.ServiceName)
		case slices.Contains(found, descriptor):
			code.faultf("the service %q is given twice", service.ServiceName)
		default:
			found = append(found, descriptor)
		}
	}
	return found
}
