package annotated

import (
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/annotatedpb"
)

// An Idempotent is the rule of a method whose calls run once for their key.
type Idempotent struct {
	Key []Part
	// Optional runs a call as an ordinary one if it has none of the parts that the client
	// chooses.
	Optional bool
	Name     string // in events; "": the full method. It is no part of the key.
	Settings Settings
}

// IdempotencyKey returns the key of the rule; read returns that of a part.
func IdempotencyKey[R any](i *Idempotent, read func(Part) core.Key[R]) core.Key[R] {
	return keyOf(i.Key, read)
}

// Options returns the options of core for the calls.
func (i *Idempotent) Options() []core.Option {
	options := i.Settings.Options()
	if i.Name != "" {
		options = append(options, core.WithName(i.Name))
	}
	return options
}

// ClientParts returns the parts of the key that the client chooses.
func (i *Idempotent) ClientParts() []Part {
	return slices.DeleteFunc(slices.Clone(i.Key), func(p Part) bool { return !p.ofClient() })
}

// idempotent reads the rule of a method.
func (r *reader) idempotent(at place, d protoreflect.MethodDescriptor, declared *annotatedpb.Idempotent) *Idempotent {
	rule := &Idempotent{
		Key:      r.parts(at, d, declared.GetKey()),
		Optional: declared.GetOptional(),
		Name:     declared.GetName(),
		Settings: Settings{Wait: at.wait(declared.GetWait()), Retention: at.retention(declared.GetRetention())},
	}
	if rule.Name != "" {
		at.in("name").check("WithName: ", adapter.CheckOptions(nil, core.WithName(rule.Name)))
	}
	if rule.Optional && len(rule.Key) > 0 && len(rule.ClientParts()) == 0 {
		at.in("optional").faultf("the key has no field and no metadata, so no call can lack it")
	}
	if d.IsStreamingClient() || d.IsStreamingServer() {
		at.faultf("the method is a stream, and streams are not idempotent")
	}
	options, _ := d.Options().(*descriptorpb.MethodOptions)
	if options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS {
		at.faultf("idempotency_level says that the method has no side effects, so its calls may run twice")
	}
	return rule
}
