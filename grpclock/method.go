package grpclock

import (
	"sync"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/adapter/protomsg"
	"github.com/reqlock/reqlock/core"
)

// ByMethod chooses the key by the method of the call. Methods that are not
// in keys run without a lock. Method names have the form of gRPC,
// "/pkg.Service/Method"; generated code has constants for them:
//
//	grpclock.ByMethod(map[string]grpclock.Key{
//		pb.Bank_Transfer_FullMethodName: grpclock.Field[*pb.TransferRequest]("account.id").Named("account"),
//	})
//
// The key of a method may be several keys: see core.All.
//
// Unary calls run only through a UnaryServerInterceptor, and streams only through a
// StreamServerInterceptor. ServerOptions makes both. If one of them is missing, its
// methods run without a lock. The observer receives a Warned event for each such method,
// but not before the first call of the other interceptor.
//
// ByMethod panics if the map is empty, or has a zero Key or an unknown method, and if a Field or
// Message reads another type than the method receives. Known are the methods of all protobuf
// services that are linked into the program (protoregistry.GlobalFiles), since no server has its
// services yet. For a service without protobuf, see core.Switch.
func ByMethod(keys map[string]Key) Key {
	key, err := protomsg.ByMethod(calls(), keys)
	if err != nil {
		panic(self.Errorf("%w", err))
	}
	return key
}

// unlocked reports the methods of a ByMethod that run without a lock, because the server has
// an interceptor for only one kind of method.
type unlocked struct {
	locks     *core.Locker
	byMethods []*protomsg.Methods // those of the key of an interceptor
	unaryOnly bool                // the interceptor is an IdempotentUnaryServerInterceptor
	told      sync.Once           // done with the first call
}

// locksUnary notes that there is an interceptor for the unary methods.
func (u *unlocked) locksUnary() {
	for _, m := range u.byMethods {
		m.NoteUnary()
	}
}

// locksStreams notes that there is an interceptor for the streams.
func (u *unlocked) locksStreams() {
	for _, m := range u.byMethods {
		m.NoteStreams()
	}
}

// warnOfUnlocked sends the events, with the first call of the interceptor. All interceptors
// of a server are made before its first call.
func (c *config) warnOfUnlocked() {
	c.told.Do(func() {
		for _, m := range c.byMethods {
			switch {
			case m.HasStreams():
			case c.unaryOnly:
				c.warnOf(m.Streams, "the stream", "IdempotentUnaryServerInterceptor does not cover streams: "+
					"leave it out of this ByMethod, and lock it by ServerOptions with a ByMethod of its own")
			default:
				c.warnOf(m.Streams, "the stream", "no StreamServerInterceptor has this ByMethod: make both interceptors with ServerOptions")
			}
			if !m.HasUnary() {
				c.warnOf(m.Unary, "the unary method", "no UnaryServerInterceptor has this ByMethod: make both interceptors with ServerOptions")
			}
		}
	})
}

// An unlockedMethod is what an interceptor warns of once.
type unlockedMethod struct {
	interceptor *config
	method      string
}

// warnOf sends an event for each of the methods.
func (c *config) warnOf(names []string, kind, why string) {
	for _, name := range names {
		adapter.Warn(c.locks, unlockedMethod{c, name}, self.Errorf("ByMethod lists %s %s, which runs without a lock, because %s", kind, name, why))
	}
}
