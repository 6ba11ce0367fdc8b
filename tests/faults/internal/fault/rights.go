package fault

import (
	"strings"

	"github.com/redis/go-redis/v9"
)

// operator is the user of whoever gives orders while nobody else may do anything.
const operator = "operator"

// withOperator is the same fault, on a scene whose Admin is signed in as a user of
// its own.
func withOperator(f Fault) Fault {
	inject := f.Inject
	f.Inject = func(s *System) {
		s.command("ACL", "SETUSER", operator, "on", "nopass", "~*", "&*", "+@all")
		own := *s
		own.Admin = s.Server.Client(s, func(o *redis.Options) { o.Username, o.Password = operator, "any" })
		inject(&own)
		s.command("ACL", "DELUSER", operator)
	}
	return f
}

// setRights returns a strike that changes what those may who do not sign in, in one
// of these ways.
func setRights(ways ...string) injector {
	return func(s *System) func() {
		list, err := s.Admin.(*redis.Client).ACLList(s.Context()).Result()
		if err != nil {
			s.Fatalf("ACL LIST: %v", err)
		}
		back := []any{"ACL", "SETUSER", "default", "reset"}
		for _, line := range list {
			if rule, is := strings.CutPrefix(line, "user default "); is {
				back = append(back, fields(rule)...)
			}
		}
		way := ways[s.Random.IntN(len(ways))]
		s.command(append([]any{"ACL", "SETUSER", "default"}, fields(way)...)...)
		return func() { s.command(back...) }
	}
}

// fields returns the words of a text, as parts of an order.
func fields(text string) []any {
	var all []any
	for _, word := range strings.Fields(text) {
		all = append(all, word)
	}
	return all
}

// killConnections ends all connections: those that are signed in remain so.
func killConnections(s *System) func() {
	for _, kind := range []string{"normal", "pubsub"} {
		s.command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
	}
	return func() {}
}
