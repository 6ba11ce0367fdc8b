package pubsub

import "github.com/reqlock/reqlock/internal/redis/keyspace"

// A hearer turns messages into hints.
type hearer struct {
	names   keyspace.Names
	process string
	hint    func(key, token string)
}

// message passes a message on, if it is a hint, and if its key can be told. A
// name that is written as a digest is known only while somebody waits: waited
// returns the key then.
func (h *hearer) message(payload string, waited func(name string) (key string, ok bool)) {
	token, name, ok := keyspace.ParseHint(payload, h.process)
	if !ok {
		return
	}
	key, known := waited(name)
	if !known {
		key, known = h.names.Key(name)
	}
	if known {
		h.hint(key, token)
	}
}
