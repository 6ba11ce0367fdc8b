package grpclock

import (
	"fmt"
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/fieldpath"
	"github.com/reqlock/reqlock/internal/adapter/protomsg"
	"github.com/reqlock/reqlock/internal/keytext"
)

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
	fields, err := fieldpath.Parse(descriptorOf[M](path), path)
	if err != nil {
		panic(fmt.Sprintf("reqlock: grpclock: Field(%q): %v", path, err))
	}
	key := core.KeyOf(func(c *Call) (string, error) {
		m, err := messageOf[M](c)
		if err != nil {
			return "", err
		}
		return fields.Key(m.ProtoReflect())
	})
	return protomsg.Reads[M](describedField(path, key))
}

// describedField names a key that reads the field of a path in its errors.
func describedField(path string, key Key) Key {
	return key.Describe(keytext.Call("Field", path), "the field "+strconv.Quote(path))
}

// descriptorOf returns the descriptor of a generated message type.
func descriptorOf[M proto.Message](path string) (d protoreflect.MessageDescriptor) {
	var m M
	defer func() {
		if recover() != nil {
			panic(fmt.Sprintf("reqlock: grpclock: Field(%q): %T is not a generated message type", path, m))
		}
	}()
	return m.ProtoReflect().Descriptor()
}
