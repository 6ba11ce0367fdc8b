package protolock

import (
	"fmt"

	"google.golang.org/grpc/metadata"

	"github.com/reqlock/reqlock/adapter/protomsg"
	"github.com/reqlock/reqlock/grpclock"
)

// An Option is what rules need of the program's code: see Source and InCode.
type Option struct{ add func(*ruleCode) }

// ruleCode is the code that rules refer to.
type ruleCode struct {
	sources map[string]grpclock.Key
	inCode  []*protomsg.Methods
	faults  []error
}

// faultf adds a mistake of the arguments of New.
func (code *ruleCode) faultf(format string, args ...any) {
	code.faults = append(code.faults, self.Errorf("New: "+format, args...))
}

// Source gives a key to the rules that name it: key { source: "user" }. A .proto file cannot
// say who the client is:
//
//	protolock.Source("user", grpclock.ContextValue(userKey{}))
//
// A key that returns core.ErrSkip takes no lock. If it is the whole key of a lock that
// declares neither permits nor shared, its Permits, Shared and SharedWhen
// count, which the .proto file does not show. As one of several parts, or in an idempotent rule,
// such a key is an error of New, and so are several keys (core.All).
//
// An empty name and a zero Key panic. A name that is given twice is an error of New.
func Source(name string, key grpclock.Key) Option {
	self.Require(name != "", "Source needs a name")
	self.Require(!key.IsZero(), fmt.Sprintf("Source: the key of %q is the zero Key", name))
	return Option{func(code *ruleCode) {
		if _, twice := code.sources[name]; twice {
			code.faultf("the source %q is given twice", name)
		}
		code.sources[name] = key
	}}
}

// InCode says which methods an interceptor with a grpclock.ByMethod locks, by the key of that
// interceptor. A lock whose key cannot be written in a .proto file stays in code so:
//
//	inCode := grpclock.ByMethod(map[string]grpclock.Key{pb.Bank_Settle_FullMethodName: settlement})
//	rules := protolock.Must(protolock.New(services, protolock.InCode(inCode)))
//	options := append(rules.ServerOptions(locks), grpclock.ServerOptions(locks, inCode)...)
//
// The methods of the ByMethod count as declared. If one of them declares a lock, too, that is an
// error of New. If no interceptor has the ByMethod, the observer receives a Warned event
// for each method. A key without a ByMethod panics.
func InCode(key grpclock.Key) Option {
	self.Require(!key.IsZero(), "InCode needs a key")
	byMethods := protomsg.MethodsOf(key)
	self.Require(len(byMethods) > 0, "InCode needs the key of a ByMethod")
	return Option{func(code *ruleCode) {
		code.inCode = append(code.inCode, byMethods...)
	}}
}

// parts returns what the rules need to make keys.
func (code *ruleCode) parts() protomsg.Parts[*grpclock.Call] {
	return protomsg.Parts[*grpclock.Call]{
		Calls:          protomsg.Calls[*grpclock.Call]{Method: (*grpclock.Call).FullMethod, Message: (*grpclock.Call).Message},
		Metadata:       grpclock.Metadata,
		IdempotencyKey: grpclock.IdempotencyKey,
		Header: func(c *grpclock.Call, name string) []string {
			return metadata.ValueFromIncomingContext(c.Context(), name)
		},
		Sources: code.sources,
		InCode:  code.inCode,
	}
}
