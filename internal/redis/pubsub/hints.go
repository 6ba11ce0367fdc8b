package pubsub

import "github.com/reqlock/reqlock/internal/redis/keyspace"

// A hintDecoder decodes messages into hints.
type hintDecoder struct {
	names   keyspace.Names
	process string
	hint    func(key, token string)
}

// decode calls the hint function if the message is a hint for a known key. keyOf returns
// the key of a lock's name while the key has a listener. Without a listener, the decoder
// derives the key from the name, which is impossible if the name contains a digest.
func (d *hintDecoder) decode(payload string, keyOf func(name string) (key string, ok bool)) {
	token, name, ok := keyspace.ParseHint(payload, d.process)
	if !ok {
		return
	}
	key, known := keyOf(name)
	if !known {
		key, known = d.names.Key(name)
	}
	if known {
		d.hint(key, token)
	}
}
