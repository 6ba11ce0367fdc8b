package grpclock

import (
	"errors"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/reqlock/reqlock/core"
)

// A probe finds out at registration what a key function reads. It does not run functions of
// the application: it ends as soon as such a function reads from its Call. So it finds
// nothing behind those functions.
type probe struct {
	// input is the message that the calls have, and message is an empty one. Both may be
	// nil: then types are not compared.
	input   protoreflect.MessageDescriptor
	message proto.Message
	// fails says, for each answer of a key function of this package, whether it is an error:
	// core.First goes on after an error, and core.Join goes on after a key.
	fails    []bool
	answered int // how many answers the current run has had

	wrong     error      // what the key function reads instead of input; nil if nothing was found
	byMethods []*methods // the methods of each ByMethod that was found
}

// errProbed ends a probe.
var errProbed = errors.New("reqlock: a key function of the application reads its call")

// maxRuns is how often a probe runs a key function.
const maxRuns = 64

// inspect probes a key function with all combinations of answers, up to maxRuns.
func (p *probe) inspect(key KeyFunc) {
	p.fails = p.fails[:0]
	for range maxRuns {
		p.answered = 0
		p.run(key)
		last := p.answered - 1
		for last >= 0 && p.fails[last] {
			last--
		}
		if last < 0 {
			return
		}
		p.fails = append(p.fails[:last], true)
	}
}

func (p *probe) run(key KeyFunc) {
	defer func() { _ = recover() }() // errProbed, or a mistake that the first call shows
	_, _ = key(&Call{probe: p})
}

// answer returns the result of a key function of this package.
func (p *probe) answer() (string, error) {
	if p.answered == len(p.fails) {
		p.fails = append(p.fails, false)
	}
	p.answered++
	if p.fails[p.answered-1] {
		return "", core.ErrNoKey
	}
	return "probe", nil
}

// reads answers for a key function that reads a message of type M.
func reads[M any](p *probe) (string, error) {
	if p.input != nil && !fits[M](p) {
		p.wrong = fmt.Errorf("its key function reads a %v, and the message of the method is a %s", reflect.TypeFor[M](), p.input.FullName())
	}
	return p.answer()
}

// fits reports whether the messages of the calls may be of type M.
func fits[M any](p *probe) bool {
	var m M
	if reflect.TypeFor[M]().Kind() == reflect.Interface {
		_, ok := any(p.message).(M)
		return ok || p.message == nil
	}
	generated, ok := any(m).(proto.Message)
	return !ok || generated.ProtoReflect().Descriptor().FullName() == p.input.FullName()
}

// probeOf returns a probe for calls of a method.
func probeOf(method protoreflect.MethodDescriptor) *probe {
	p := &probe{input: method.Input()}
	if linked, err := protoregistry.GlobalTypes.FindMessageByName(p.input.FullName()); err == nil {
		p.message = linked.Zero().Interface()
	}
	return p
}

// ofCall returns a key function of this package that reads no message.
func ofCall(read func(*Call) (string, error)) func(*Call) (string, error) {
	return func(c *Call) (string, error) {
		if c.probe != nil {
			return c.probe.answer()
		}
		return read(c)
	}
}
