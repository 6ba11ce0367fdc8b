package fault

import (
	"strings"

	"github.com/redis/go-redis/v9"
)

// operator is the user of whoever gives orders while nobody else may do anything.
const operator = "operator"

// asOperator is the same fault, on a scene whose Admin is signed in as a user of
// its own.
func asOperator(f Fault) Fault {
	play := f.Play
	f.Play = func(s *Scene) {
		s.order("ACL", "SETUSER", operator, "on", "nopass", "~*", "&*", "+@all")
		own := *s
		own.Admin = s.Server.Client(s, func(o *redis.Options) { o.Username, o.Password = operator, "any" })
		play(&own)
		s.order("ACL", "DELUSER", operator)
	}
	return f
}

// permitted returns a strike that changes what those may who do not sign in, in one
// of these ways.
func permitted(ways ...string) strike {
	return func(s *Scene) func() {
		list, err := s.Admin.(*redis.Client).ACLList(s.Context()).Result()
		if err != nil {
			s.Fatalf("ACL LIST: %v", err)
		}
		back := []any{"ACL", "SETUSER", "default", "reset"}
		for _, line := range list {
			if rule, is := strings.CutPrefix(line, "user default "); is {
				back = append(back, words(rule)...)
			}
		}
		way := ways[s.Random.IntN(len(ways))]
		s.order(append([]any{"ACL", "SETUSER", "default"}, words(way)...)...)
		return func() { s.order(back...) }
	}
}

// words returns the words of a text, as parts of an order.
func words(text string) []any {
	var all []any
	for _, word := range strings.Fields(text) {
		all = append(all, word)
	}
	return all
}

// reconnected ends all connections: those that are signed in remain so.
func reconnected(s *Scene) func() {
	for _, kind := range []string{"normal", "pubsub"} {
		s.order("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
	}
	return func() {}
}
