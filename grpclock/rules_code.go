package grpclock

import (
	"fmt"
	"maps"
	"slices"

	"github.com/reqlock/reqlock/internal/adapter/protomsg"
	"github.com/reqlock/reqlock/internal/adapter/registration"
	"github.com/reqlock/reqlock/internal/annotated"
	"github.com/reqlock/reqlock/internal/bridge"
)

// A RuleOption is what rules need of the program's code: see Source and InCode.
type RuleOption struct{ add func(*ruleCode) }

// ruleCode is the code that rules refer to.
type ruleCode struct {
	sources map[string]Key
	inCode  []*protomsg.Methods
	faults  []error
}

// Source gives a key to the rules that name it: key { source: "user" }. Who the client
// is cannot be written in a .proto file:
//
//	grpclock.Source("user", grpclock.ContextValue(userKey{}))
//
// A key that returns core.ErrSkip takes no lock. If it is the whole key of a lock that
// declares neither permits nor shared, its Permits, Shared and SharedWhen
// count, which the .proto file does not show. As one of several parts, or in an idempotent rule,
// such a key is an error of AnnotatedErr, and so are several keys (core.All).
//
// An empty name and a zero Key panic. A name that is given twice is an error of
// AnnotatedErr.
func Source(name string, key Key) RuleOption {
	registration.Must(self, name != "", "Source needs a name")
	registration.Must(self, bridge.AboutOf(key) != nil, fmt.Sprintf("Source: the key of %q is the zero Key", name))
	return RuleOption{func(code *ruleCode) {
		if _, twice := code.sources[name]; twice {
			code.faults = append(code.faults, fmt.Errorf("reqlock: grpclock: Annotated: the source %q is given twice", name))
		}
		code.sources[name] = key
	}}
}

// InCode says which methods an interceptor with a ByMethod locks, by the key of that
// interceptor. A lock whose key cannot be written in a .proto file stays in code so:
//
//	inCode := grpclock.ByMethod(map[string]grpclock.Key{pb.Bank_Settle_FullMethodName: settlement})
//	rules := grpclock.Annotated(services, grpclock.InCode(inCode))
//	options := append(rules.ServerOptions(locks), grpclock.ServerOptions(locks, inCode)...)
//
// The methods of the ByMethod count as declared. If one of them declares a lock, too, that is an
// error of AnnotatedErr. If no interceptor has the ByMethod, the observer receives a Warned event
// for each method. A key without a ByMethod panics.
func InCode(key Key) RuleOption {
	registration.Must(self, bridge.AboutOf(key) != nil, "InCode needs a key")
	byMethods := protomsg.MethodsOf(key)
	registration.Must(self, len(byMethods) > 0, "InCode needs the key of a ByMethod")
	return RuleOption{func(code *ruleCode) {
		code.inCode = append(code.inCode, byMethods...)
	}}
}

// program returns the names of the code.
func (code *ruleCode) program() annotated.Program {
	program := annotated.Program{Sources: slices.Sorted(maps.Keys(code.sources))}
	for _, m := range code.inCode {
		program.InCode = append(program.InCode, m.All()...)
	}
	return program
}
