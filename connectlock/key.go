package connectlock

import (
	"net"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/adapter/protomsg"
	"github.com/reqlock/reqlock/core"
)

// A Key says where the lock key of a call comes from. Functions of this package return Keys,
// core.KeyOf makes one from a function of your own, and core combines them:
//
//	connectlock.Message((*bankv1.TransferRequest).GetAccountId).Named("account")
//
// A function of your own that reads the message must use the comma-ok form, as in Call.Message.
// Without it, c.Message().(*bankv1.TransferRequest) panics on other methods, and on streams, which
// open without a message. ByMethod does not check that such a function fits its method.
type Key = core.Key[*Call]

// Header reads the key from a header of a call. Case does not matter in the name. If the header
// occurs more than once, the error is core.ErrInvalidKey, since the lock and the handler might read
// different values. An empty name panics, and so does a name that ends in "-bin", since its values
// are bytes.
//
// The client chooses the value: see the package comment on keys.
func Header(name string) Key {
	self.Require(name != "", "Header needs a name")
	self.Require(!strings.HasSuffix(strings.ToLower(name), "-bin"), "Header: "+name+" holds bytes, which are no key")
	name = http.CanonicalHeaderKey(name)
	return core.KeyOf(func(c *Call) (string, error) { return adapter.Only(c.header[name]) }).
		Describe(adapter.Call("Header", name), "the header "+strconv.Quote(name))
}

// IdempotencyKey reads the key from the header Idempotency-Key, which is the same in all copies of
// one call. The client chooses the header, so join it with the user:
//
//	core.Join(connectlock.ContextValue(userKey{}), connectlock.IdempotencyKey())
//
// Alone, the header is one key for all users: two users with the same header block each other.
//
// The format is that of draft-ietf-httpapi-idempotency-key-header-07, an expired draft: quoted or
// bare. Both forms are the same key. A bare key consists of visible ASCII except quotes, commas,
// semicolons and backslashes; a quoted key, of printable ASCII. A missing or empty key is
// core.ErrNoKey. A header that occurs more than once, a list, and any other malformed value are
// core.ErrInvalidKey.
//
// Under an IdempotentInterceptor a copy of a call gets the first answer. Under an Interceptor copies
// do not run at the same time, but a copy that arrives after the first call has ended runs again.
func IdempotencyKey() Key {
	return core.KeyOf(func(c *Call) (string, error) { return adapter.IdempotencyKey(c.header["Idempotency-Key"]) }).
		Describe("IdempotencyKey()", `the header "Idempotency-Key"`)
}

// Peer reads the key from the IP address of the client's connection, without its port. Behind a
// proxy that is the proxy, so that all clients share one lock. A peer without an IP address, as on a
// Unix socket, is core.ErrNoKey or core.ErrInvalidKey.
//
// Connect does not give the certificate of the client to an interceptor. With mutual TLS, put the
// identity of r.TLS into the context in a middleware of net/http, and read it by ContextValue.
func Peer() Key {
	return core.KeyOf(func(c *Call) (string, error) {
		host, _, err := net.SplitHostPort(c.peer.Addr)
		if err != nil {
			host = c.peer.Addr
		}
		return adapter.IP(host)
	}).Describe("Peer()", "")
}

// ContextValue reads the key from a value in the context of a call, such as the user that an
// authentication interceptor put there. Strings, integers and values with a method String are keys. A
// value of another type is core.ErrInvalidKey, and the error names the type. A missing or nil value
// is core.ErrNoKey. A nil key panics.
func ContextValue(key any) Key {
	self.Require(key != nil, "ContextValue needs a key")
	return core.KeyOf(func(c *Call) (string, error) { return adapter.Value(c.ctx.Value(key)) }).
		Describe(adapter.Call("ContextValue", key), "")
}

// ContextValueAs reads the key from a value of type T in the context of a call, with the function
// get:
//
//	connectlock.ContextValueAs(userKey{}, func(u *User) string { return u.ID })
//
// A missing or nil value is core.ErrNoKey. A value of another type is core.ErrInvalidKey, and the
// error names the type. A nil key or get panics.
func ContextValueAs[T any](key any, get func(T) string) Key {
	self.Require(key != nil, "ContextValueAs needs a key")
	self.Require(get != nil, "ContextValueAs needs a function")
	return core.KeyOf(func(c *Call) (string, error) { return adapter.ValueAs(c.ctx.Value(key), get) }).
		Describe(adapter.Call("ContextValueAs", key), "")
}

// Procedure is the full method of a call, "/pkg.Service/Method": one lock for each method, or a part
// for core.Join.
func Procedure() Key {
	return core.KeyOf(func(c *Call) (string, error) { return adapter.Text(c.procedure()) }).Describe("Procedure()", "")
}

// Literal is the same key for every call: one lock for all of them, or a part for core.Join. An
// empty key panics.
func Literal(key string) Key {
	self.Require(key != "", "Literal needs a key")
	return core.KeyOf(func(*Call) (string, error) { return key, nil }).Describe(adapter.Call("Literal", key), "")
}

// Field reads the key from a field of the message of a call. The path consists of names from the
// .proto file; dots separate nested fields:
//
//	connectlock.Field[*bankv1.TransferRequest]("account.id")
//
// The last field is a string, an integer or an enum; the key of an enum is its number. A field that
// is not set is core.ErrNoKey, and so is an empty string. Zero is core.ErrNoKey too, unless the field
// has presence, as optional fields and fields of a oneof have. A message of another type refuses the
// call with INTERNAL, as in Message: ByMethod finds this mistake at registration.
//
// Field resolves the path when it is called. It panics, and names the path, in these cases: M has no
// such field; the last field is a bool, a floating-point number, bytes or a message, which cannot be
// keys; a field in the path is repeated or a map; or the path names a oneof instead of one of its
// fields.
func Field[M proto.Message](path string) Key {
	key, err := protomsg.Field[M](calls(), path)
	if err != nil {
		panic(self.Errorf("Field(%q): %w", path, err))
	}
	return key
}

// Message reads the key from the message of a call, with the function get. With generated getters
// the compiler checks the types:
//
//	connectlock.Message((*bankv1.TransferRequest).GetAccountId)
//	connectlock.Message(func(m *bankv1.TransferRequest) string { return m.GetAccount().GetId() })
//
// M may be an interface, for the messages of several methods. An empty key is core.ErrNoKey. A
// message of another type refuses the call with INTERNAL, since the key does not fit the method: see
// ByMethod. A nil get panics.
func Message[M any](get func(M) string) Key {
	self.Require(get != nil, "Message needs a function")
	return protomsg.Message(calls(), get)
}

// ByMethod chooses the key by the method of the call. Methods that are not in keys run without a
// lock. Generated code has constants for the names:
//
//	connectlock.ByMethod(map[string]connectlock.Key{
//		bankv1connect.BankTransferProcedure: connectlock.Field[*bankv1.TransferRequest]("account.id").Named("account"),
//	})
//
// The key of a method may be several keys: see core.All.
//
// ByMethod panics if the map is empty, or has a zero Key or an unknown method, and if a Field or
// Message reads another type than the method receives. Known are the methods of all protobuf services
// that are linked into the program (protoregistry.GlobalFiles). For a service without protobuf, see
// core.Switch.
func ByMethod(keys map[string]Key) Key {
	key, err := protomsg.ByMethod(calls(), keys)
	if err != nil {
		panic(self.Errorf("%w", err))
	}
	return key
}
