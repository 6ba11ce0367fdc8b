// Package annotated reads the rules that .proto files declare for the methods of their services,
// by the options of annotations/reqlock/v1/annotations.proto. It depends on the descriptors of
// services alone, and on no framework, so protolock and the command lint share it.
//
// It finds all mistakes of all services, and returns them as one error. Each has the file, the
// service or method, the rule and what is wrong. A line is not known, because the descriptors in
// generated code do not have the lines.
package annotated

import (
	"errors"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/reqlock/reqlock/internal/annotatedpb"
)

// Read returns all methods of services with their rules. Its error joins all mistakes.
func Read(services []protoreflect.ServiceDescriptor, program Program) ([]*Method, error) {
	r := reader{program: &program}
	var all []*Method
	for _, service := range services {
		all = append(all, r.service(service)...)
	}
	return all, errors.Join(r.faults...)
}

// A reader reads the rules of services.
type reader struct {
	program *Program
	faults  []error
}

// service reads the methods of a service.
func (r *reader) service(service protoreflect.ServiceDescriptor) []*Method {
	at, declared := placeOf(&r.faults, service), &annotatedpb.ServiceRules{}
	if _, err := readOption(service, serviceOption, declared); err != nil {
		at.fault(err)
	}
	defaults := Settings{Wait: at.wait(declared.GetWait()), TTL: at.ttl(declared.GetTtl())}
	methods := make([]*Method, service.Methods().Len())
	for i := range methods {
		m := r.method(service.Methods().Get(i), defaults)
		if declared.GetMustDeclare() && !m.IsDeclared() {
			placeOf(&r.faults, m.Descriptor).faultf("it declares nothing, and must_declare of the service demands a rule: " +
				"write lock, idempotent or unlocked")
		}
		methods[i] = m
	}
	return methods
}

// method reads the rules of a method.
func (r *reader) method(d protoreflect.MethodDescriptor, defaults Settings) *Method {
	at, declared := placeOf(&r.faults, d), &annotatedpb.MethodRules{}
	m := &Method{Descriptor: d}
	m.InCode = r.program.locksInCode(m.FullMethod())
	found, err := readOption(d, methodOption, declared)
	if err != nil {
		at.fault(err)
	}
	m.hasOption = found
	m.Locks, m.LockSettings = r.locks(at, d, declared.GetLock())
	m.LockSettings = m.LockSettings.or(defaults)
	if rule := declared.GetIdempotent(); rule != nil {
		m.Idempotent = r.idempotent(at.in("idempotent"), d, rule)
		m.Idempotent.Settings = m.Idempotent.Settings.or(defaults)
	}
	m.Unlocked = declared.GetUnlocked()
	hasRule := len(m.Locks) > 0 || m.Idempotent != nil
	switch {
	case m.Unlocked && hasRule:
		at.in("unlocked").faultf("the method has another rule: keep one of them")
	case m.InCode && (m.Unlocked || len(m.Locks) > 0):
		at.faultf("a ByMethod of the program locks it, too: keep one of them")
	case err == nil && found && !m.Unlocked && !hasRule:
		at.faultf("its option is empty: write lock, idempotent or unlocked")
	}
	return m
}
