package grpclock

import (
	"crypto/sha256"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/reqlock/reqlock/internal/bridge"
)

// fingerprintVersion is the first part of the digested text. A new version changes
// all fingerprints, so copies of stored calls would be refused with MISMATCH.
const fingerprintVersion = 1

// fingerprintOf digests the message of a call: the name of its type, and its bytes
// with sorted maps. Its error is that of a key.
func fingerprintOf(c *Call) ([]byte, error) {
	m, ok := c.Message().(proto.Message)
	if !ok {
		return nil, bridge.DescribeError(fmt.Errorf("the message of %s is a %T and no proto.Message: it needs WithFingerprint", c.method, c.message), "", "")
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, bridge.DescribeError(fmt.Errorf("the fingerprint of a message: %w: it needs WithFingerprint", err), "", "")
	}
	name := m.ProtoReflect().Descriptor().FullName()
	digest := sha256.New()
	fmt.Fprintf(digest, "%d:%d:%s", fingerprintVersion, len(name), name)
	digest.Write(b)
	return digest.Sum(nil), nil
}
