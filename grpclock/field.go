package grpclock

import (
	"google.golang.org/protobuf/proto"

	"github.com/reqlock/reqlock/adapter/protomsg"
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
	key, err := protomsg.Field[M](calls(), path)
	if err != nil {
		panic(self.Errorf("Field(%q): %w", path, err))
	}
	return key
}
