package connectlock

import (
	"fmt"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/adapter/protomsg"
	"github.com/reqlock/reqlock/core"
)

// Declared returns the option of handlers that run their calls by the rules which the .proto file
// declares for their methods, by the options of reqlock/v1/annotations.proto:
//
//	path, handler := bankv1connect.NewBankHandler(bank,
//		connect.WithInterceptors(auth),
//		connectlock.Declared(locks, connectlock.Source("user", connectlock.ContextValue(userKey{}))))
//
// Each handler gets the interceptors of its own method, behind those of the options before: an
// IdempotentInterceptor if the method is idempotent, and an Interceptor if it declares locks. Their
// options are those of l, so write locks.With(core.WithWait(2*time.Second)) for all methods. Wait and
// TTL of a rule, or else of its service, have precedence. A handler whose method declares nothing runs
// without a lock: see must_declare in the file.
//
// Declared panics if l is nil. The constructor of a handler panics where the interceptors do, and with
// all mistakes in the rules of its service, as protolock.New describes them. It also panics if the
// handler has no schema (connect.WithSchema), which generated code sets before the options of the
// program, if l shares its locks (core.WithPermits and core.WithShared), because the rules say which
// locks are shared, and if a method of InCode has no Interceptor.
func Declared(l *core.Locker, opts ...RuleOption) connect.HandlerOption {
	self.Require(l != nil, "Declared needs a locker")
	code := &ruleCode{sources: make(map[string]Key)}
	for _, opt := range opts {
		self.Require(opt.add != nil, "Declared: an option is empty")
		opt.add(code)
	}
	l = adapter.NoteCaller(l)
	return connect.WithConditionalHandlerOptions(func(spec connect.Spec) []connect.HandlerOption {
		chain := adapter.Must(code.chain(l, spec))
		return []connect.HandlerOption{connect.WithInterceptors(chain...)}
	})
}

// A RuleOption is what the rules of Declared need of the program's code: see Source and InCode.
type RuleOption struct{ add func(*ruleCode) }

// ruleCode is the code that rules refer to.
type ruleCode struct {
	sources map[string]Key
	inCode  []*protomsg.Methods
}

// Source gives a key to the rules that name it: key { source: "user" }. A .proto file cannot say who
// the client is:
//
//	connectlock.Source("user", connectlock.ContextValue(userKey{}))
//
// A key that returns core.ErrSkip takes no lock. If it is the whole key of a lock that declares neither
// permits nor shared, its Permits, Shared and SharedWhen count, which the .proto file does not show. As
// one of several parts, or in an idempotent rule, such a key is a mistake, and so are several keys
// (core.All).
//
// An empty name and a zero Key panic, and a name that is given twice makes Declared panic.
func Source(name string, key Key) RuleOption {
	self.Require(name != "", "Source needs a name")
	self.Require(!key.IsZero(), fmt.Sprintf("Source: the key of %q is the zero Key", name))
	return RuleOption{func(code *ruleCode) {
		_, twice := code.sources[name]
		self.Require(!twice, fmt.Sprintf("Declared: the source %q is given twice", name))
		code.sources[name] = key
	}}
}

// InCode says which methods an Interceptor with a ByMethod locks, by the key of that Interceptor. A
// lock whose key cannot be written in a .proto file stays in code so:
//
//	inCode := connectlock.ByMethod(map[string]connectlock.Key{bankv1connect.BankSettleProcedure: settlement})
//	options := connect.WithHandlerOptions(connect.WithInterceptors(connectlock.Interceptor(locks, inCode)),
//		connectlock.Declared(locks, connectlock.InCode(inCode)))
//
// The methods of the ByMethod count as declared. If one of them declares a lock, too, that is a
// mistake. A key without a ByMethod panics.
func InCode(key Key) RuleOption {
	self.Require(!key.IsZero(), "InCode needs a key")
	byMethods := protomsg.MethodsOf(key)
	self.Require(len(byMethods) > 0, "InCode needs the key of a ByMethod")
	return RuleOption{func(code *ruleCode) { code.inCode = append(code.inCode, byMethods...) }}
}

// chain returns the interceptors of a handler, from the outside inwards.
func (code *ruleCode) chain(l *core.Locker, spec connect.Spec) (chain []connect.Interceptor, err error) {
	rule, err := code.ruleOf(spec)
	if err != nil {
		return nil, err
	}
	if rule.IsIdempotent() {
		key, settings, err := rule.Idempotent(l)
		if err != nil {
			return nil, err
		}
		chain = append(chain, IdempotentInterceptor(l, key, declared(settings)...))
	}
	if rule.HasLock() {
		key, settings, err := rule.Lock(l)
		if err != nil {
			return nil, err
		}
		view := l.With(settings...)
		if err := protomsg.CheckLocker(view); err != nil {
			return nil, self.Errorf("Declared: %w", err)
		}
		if err := rule.CheckLock(view); err != nil { // before the interceptor, which refuses the same and does not name the rule
			return nil, err
		}
		chain = append(chain, Interceptor(l, key, declared(settings)...))
	}
	return chain, nil
}

// declared returns the options of the interceptor of a rule.
func declared(settings []core.Option) []core.Option {
	return append(slices.Clip(settings), protomsg.Declared(self).Option(true))
}

// ruleOf returns the rule of the method of a handler.
func (code *ruleCode) ruleOf(spec connect.Spec) (rule protomsg.Rule[*Call], err error) {
	method, ok := spec.Schema.(protoreflect.MethodDescriptor)
	if !ok {
		return rule, self.Errorf("Declared: the handler of %s has no schema: write connect.WithSchema with the descriptor of the method "+
			"before Declared, or generate the code by protoc-gen-connect-go 1.13 or newer", spec.Procedure)
	}
	service := method.Parent().(protoreflect.ServiceDescriptor) //nolint:forcetypeassert // that of a method always is one
	rules, err := protomsg.ReadRules([]protoreflect.ServiceDescriptor{service}, protomsg.Parts[*Call]{
		Calls: calls(), Metadata: Header, IdempotencyKey: IdempotencyKey, Header: rpc().Header, Sources: code.sources, InCode: code.inCode,
	})
	if err != nil {
		return rule, err
	}
	rule = rules[method.Index()]
	for _, m := range code.inCode {
		if !m.HasUnary() && slices.Contains(m.All(), rule.FullMethod()) {
			return rule, self.Errorf("InCode names %s, which runs without a lock, because no Interceptor has its ByMethod: make it first", rule.FullMethod())
		}
	}
	return rule, nil
}
