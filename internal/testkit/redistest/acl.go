package redistest

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Rights is what a user of Redis has to be granted for reqlock, and no more: the
// keys and channels of the prefix "reqlock:", and commands. A client of a cluster
// needs ClusterRights as well. README.md and the package documentation of core
// carry both, word by word.
const Rights = "~reqlock:* ~{reqlock:* &reqlock:* " +
	"+del +eval +evalsha +exists +get +hdel +hget +hmget +hset +lindex +llen +lpop +lpos +lrem +pexpire +ping +pttl +publish +rpush +set +subscribe +time"

// ClusterRights is what a client of a cluster needs besides.
const ClusterRights = "&{reqlock:* +asking +cluster|slots +spublish +ssubscribe +sunsubscribe"

// ReplicaRights is what a client needs besides where replicas have to acknowledge
// what is granted. Tests of that grant it: nobody else needs it.
const ReplicaRights = "+wait"

// QuorumRights is what the clients of a quorum need besides. Tests of one grant it.
const QuorumRights = "+info"

// rightsEnv makes all servers grant no more than Rights to clients that do not
// sign in, which are those of the code under test. What tests ask the clients of
// this package for goes to the server by way of an administrator: see route. Its
// value is "1", and the prefixes of tests that use others than "reqlock:", separated
// by commas.
const rightsEnv = "REQLOCK_TEST_ACL"

// adminUser is the administrator, who may give any password.
const (
	adminUser  = "redistest-admin"
	noPassword = "nopass-takes-any"
)

// MinimalRights tells whether the tests run under no more than Rights.
func MinimalRights() bool { return os.Getenv(rightsEnv) != "" }

// restricted returns the args of a server under which nobody but the administrator
// has more than the rights. A server whose args say who may sign in is left alone.
func restricted(args []string, cluster bool) []string {
	cluster = cluster || slices.Contains(args, "--cluster-enabled")
	if !MinimalRights() || slices.Contains(args, "--requirepass") || definesDefault(args) {
		return nil
	}
	rule := []string{"--user", adminUser, "on", "nopass", "~*", "&*", "+@all", "--user", "default", "on", "nopass", "resetchannels"}
	rule = append(rule, strings.Fields(Rights)...)
	if cluster {
		rule = append(rule, strings.Fields(ClusterRights)...)
	}
	for _, prefix := range strings.Split(os.Getenv(rightsEnv), ",")[1:] {
		rule = append(rule, PrefixRights(prefix)...)
	}
	return rule
}

// definesDefault tells whether args define the user whom clients are that do not
// sign in.
func definesDefault(args []string) bool {
	i := slices.Index(args, "--user")
	for i >= 0 && i+1 < len(args) {
		if args[i+1] == "default" {
			return true
		}
		next := slices.Index(args[i+1:], "--user")
		if next < 0 {
			break
		}
		i += 1 + next
	}
	return false
}

// administrator is the user who may do everything, where those that do not sign in
// may not.
func (s *Server) administrator() string {
	if s.role == sentinel || restricted(s.args, false) == nil {
		return ""
	}
	return adminUser
}

// anybodysAdministrator is that of a server of which no more is known than its
// address.
func anybodysAdministrator() string {
	if !MinimalRights() {
		return ""
	}
	return adminUser
}

// Grant adds words to the rule of those who do not sign in, where they are
// restricted, until the server is started again.
func (s *Server) Grant(words ...string) {
	s.tb.Helper()
	if s.administrator() == "" {
		return
	}
	order := []any{"ACL", "SETUSER", "default"}
	for _, word := range words {
		order = append(order, word)
	}
	s.tell(order...)
}

// PrefixRights returns the words of Rights and ClusterRights that name keys and
// channels, for another prefix than "reqlock:".
func PrefixRights(prefix string) []string {
	if prefix == "" {
		return []string{"~*", "&*"}
	}
	escaped := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(prefix)
	var patterns []string
	for _, word := range strings.Fields(Rights + " " + ClusterRights) {
		if strings.Contains(word, "reqlock:") {
			patterns = append(patterns, strings.Replace(word, "reqlock:", escaped, 1))
		}
	}
	return patterns
}

// AdminClient returns a client for a test's own commands to the server at addr, which
// the cleanup of tb closes.
func AdminClient(tb testing.TB, addr string) *redis.Client {
	tb.Helper()
	return newClient(tb, redis.Options{Addr: addr}, anybodysAdministrator(), nil)
}

// SignIn returns what a test has to send first on a connection that it makes
// itself; nothing where nobody is restricted.
func SignIn() string {
	if !MinimalRights() {
		return ""
	}
	return "AUTH " + adminUser + " " + noPassword + "\r\n"
}
