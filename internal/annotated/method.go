package annotated

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// A Method is a method of a service with its rules.
type Method struct {
	Descriptor protoreflect.MethodDescriptor
	// Locks has one entry for each key that a call locks, and LockSettings is what they have in
	// common.
	Locks        []Lock
	LockSettings Settings
	// Idempotent is nil if calls are not idempotent.
	Idempotent *Idempotent
	// Unlocked is true if the method declares that it has no rule.
	Unlocked bool
	// InCode is true if the code of the program locks the method.
	InCode bool

	hasOption bool // even an unreadable one
}

// FullMethod returns the name of the method in the form of gRPC, "/pkg.Service/Method".
func (m *Method) FullMethod() string {
	return fmt.Sprintf("/%s/%s", m.Descriptor.Parent().FullName(), m.Descriptor.Name())
}

// IsStream reports whether the client or the server sends more than one message.
func (m *Method) IsStream() bool {
	return m.Descriptor.IsStreamingClient() || m.Descriptor.IsStreamingServer()
}

// IsDeclared reports whether somebody has decided about the locks of the method.
func (m *Method) IsDeclared() bool { return m.hasOption || m.InCode }

// Fault returns the error for a mistake in a rule that only the program can find. where is the
// rule or a part of it, such as "lock 1".
func (m *Method) Fault(where string, err error) error {
	var faults []error
	placeOf(&faults, m.Descriptor).in("%s", where).check("", err)
	return errors.Join(faults...)
}
