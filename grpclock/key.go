package grpclock

import (
	"strconv"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/adapter/protomsg"
	"github.com/reqlock/reqlock/core"
)

// A Key says where the lock key of a call comes from. Functions of this package return Keys,
// core.KeyOf makes one from a function of your own, and core combines them:
//
//	grpclock.Message((*pb.TransferRequest).GetAccountId).Named("account")
//
// A function of your own that reads the message must use the comma-ok form, as in
// Call.Message. Without it, c.Message().(*pb.TransferRequest) panics on other
// methods, and on streams, which open without a message. ByMethod does not check that such a
// function fits its method.
type Key = core.Key[*Call]

// Metadata reads the key from the metadata of a call. Case does not matter in the
// name. If the name occurs more than once, the error is core.ErrInvalidKey, since the
// lock and the handler might read different values. An empty name panics, and so does
// a name that ends in "-bin", since its values are bytes.
//
// The client chooses the value: see the package comment on keys.
func Metadata(name string) Key {
	self.Require(name != "", "Metadata needs a name")
	self.Require(!strings.HasSuffix(strings.ToLower(name), "-bin"), "Metadata: "+name+" holds bytes, which are no key")
	name = strings.ToLower(name)
	return core.KeyOf(func(c *Call) (string, error) {
		return adapter.Only(metadata.ValueFromIncomingContext(c.Context(), name))
	}).Describe(adapter.Call("Metadata", name), "the metadata "+strconv.Quote(name))
}

// IdempotencyKey reads the key from the metadata "idempotency-key", which is the same
// in all copies of one call. The client chooses the metadata, so join it with the
// user:
//
//	core.Join(grpclock.ContextValue(userKey{}), grpclock.IdempotencyKey())
//
// Alone, the header is one key for all users: two users with the same header block
// each other.
//
// The format is the format of the HTTP header
// (draft-ietf-httpapi-idempotency-key-header-07, an expired draft): quoted or bare. Both forms are the
// same key. grpc-gateway passes the header on only by a function of
// runtime.WithIncomingHeaderMatcher. A bare key consists of visible ASCII except quotes, commas, semicolons
// and backslashes; a quoted key, of printable ASCII. A missing or empty key is
// core.ErrNoKey. Metadata that occurs more than once, a list, and any other malformed
// value are core.ErrInvalidKey.
//
// Under an IdempotentUnaryServerInterceptor a copy of a call gets the first answer.
// Under a UnaryServerInterceptor copies do not run at the same time, but a copy that
// arrives after the first call has ended runs again.
func IdempotencyKey() Key {
	return core.KeyOf(func(c *Call) (string, error) {
		return adapter.IdempotencyKey(metadata.ValueFromIncomingContext(c.Context(), "idempotency-key"))
	}).Describe("IdempotencyKey()", `the metadata "idempotency-key"`)
}

// ContextValue reads the key from a value in the context of a call, such as the user
// that an authentication interceptor put there. Strings, integers and values with a
// method String are keys. A value of another type is core.ErrInvalidKey, and the
// error names the type. A missing or nil value is core.ErrNoKey. A nil key panics.
func ContextValue(key any) Key {
	self.Require(key != nil, "ContextValue needs a key")
	return core.KeyOf(func(c *Call) (string, error) {
		return adapter.Value(c.Context().Value(key))
	}).Describe(adapter.Call("ContextValue", key), "")
}

// ContextValueAs reads the key from a value of type T in the context of a call, with
// the function get:
//
//	grpclock.ContextValueAs(userKey{}, func(u *User) string { return u.ID })
//
// A missing or nil value is core.ErrNoKey. A value of another type is
// core.ErrInvalidKey, and the error names the type. A nil key or get panics.
func ContextValueAs[T any](key any, get func(T) string) Key {
	self.Require(key != nil, "ContextValueAs needs a key")
	self.Require(get != nil, "ContextValueAs needs a function")
	return core.KeyOf(func(c *Call) (string, error) {
		return adapter.ValueAs(c.Context().Value(key), get)
	}).Describe(adapter.Call("ContextValueAs", key), "")
}

// Method is the full method of a call, "/pkg.Service/Method": one lock for each
// method, or a part for core.Join.
func Method() Key {
	return core.KeyOf(func(c *Call) (string, error) { return adapter.Text(c.FullMethod()) }).Describe("Method()", "")
}

// Literal is the same key for every call: one lock for all of them, or a part for
// core.Join. An empty key panics.
func Literal(key string) Key {
	self.Require(key != "", "Literal needs a key")
	return core.KeyOf(func(*Call) (string, error) { return key, nil }).Describe(adapter.Call("Literal", key), "")
}

// Field reads the key from a field of the message of a call. The path consists of
// names from the .proto file; dots separate nested fields:
//
//	grpclock.Field[*pb.TransferRequest]("account.id")
//
// The last field is a string, an integer or an enum; the key of an enum is its
// number. A field that is not set is core.ErrNoKey, and so is an empty string. Zero
// is core.ErrNoKey too, unless the field has presence, as optional fields and fields
// of a oneof have. A message of another type refuses the call with INTERNAL, as in
// Message: ByMethod finds this mistake at registration.
//
// Field resolves the path when it is called. It panics, and names the path, in these
// cases: M has no such field; the last field is a bool, a floating-point number,
// bytes or a message, which cannot be keys; a field in the path is repeated or a map;
// or the path names a oneof instead of one of its fields.
func Field[M proto.Message](path string) Key {
	key, err := protomsg.Field[M](calls(), path)
	if err != nil {
		panic(self.Errorf("Field(%q): %w", path, err))
	}
	return key
}

// Message reads the key from the message of a call, with the function get. With
// generated getters the compiler checks the types:
//
//	grpclock.Message((*pb.TransferRequest).GetAccountId)
//	grpclock.Message(func(m *pb.TransferRequest) string { return m.GetAccount().GetId() })
//
// M may be an interface, for the messages of several methods. An empty key is
// core.ErrNoKey. A message of another type refuses the call with INTERNAL, since the
// key does not fit the method: see ByMethod. A nil get panics.
func Message[M any](get func(M) string) Key {
	self.Require(get != nil, "Message needs a function")
	return protomsg.Message(calls(), get)
}
