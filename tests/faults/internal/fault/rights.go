package fault

import (
	"strings"

	"github.com/redis/go-redis/v9"
)

// operator is the user of Admin while the default user has no rights.
const operator = "operator"

// withOperator returns the same fault on a system whose Admin uses the operator's user.
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

// setRights returns an injector that changes the rights of the default user to one of these
// rules.
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

// fields returns the fields of a rule as arguments of a command.
func fields(text string) []any {
	var all []any
	for _, word := range strings.Fields(text) {
		all = append(all, word)
	}
	return all
}

// killConnections closes all connections. Otherwise they would stay authenticated.
func killConnections(s *System) func() {
	for _, kind := range []string{"normal", "pubsub"} {
		s.command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
	}
	return func() {}
}
