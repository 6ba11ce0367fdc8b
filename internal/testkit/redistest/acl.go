package redistest

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Rights is the minimal ACL rule of a Redis user for reqlock: the keys and channels of the
// prefix "reqlock:", and commands. A client of a cluster also needs ClusterRights.
// docs/security.md and the package documentation of core quote both literally.
const Rights = "~reqlock:* ~{reqlock:* &reqlock:* " +
	"+del +eval +evalsha +exists +get +lindex +llen +lpop +lpos +lrange +lrem +pexpire +pexpireat +ping +pttl " +
	"+publish +rpush +set +subscribe +time +zadd +zcard +zcount +zrange +zrem +zremrangebyscore +zscore"

// ClusterRights is what a client of a cluster needs in addition.
const ClusterRights = "&{reqlock:* +asking +cluster|slots +spublish +ssubscribe +sunsubscribe"

// ReplicaRights is what a client needs in addition if replicas have to acknowledge locks.
// Tests of that grant it. Other clients do not need it.
const ReplicaRights = "+wait"

// SearchRights are what a search for unknown outcomes needs in addition. Tests of that grant them.
var SearchRights = []string{"+scan", "+getrange", "+object|idletime"}

// InstanceRight is what a process needs in addition if it registers. Tests of that grant it.
const InstanceRight = "+hset"

// InstanceRights are InstanceRight, and what an operator needs to read what was registered.
var InstanceRights = []string{InstanceRight, "+hmget"}

// QuorumRights is what the clients of a quorum need in addition. Tests of quorums grant it.
const QuorumRights = "+info"

// rightsEnv makes all servers grant only Rights to clients that do not authenticate, which
// are the clients of the code under test. Commands that a test itself sends by a client of
// this package go to the server through an administrator: see route. The value is "1",
// followed by the prefixes of tests that do not use "reqlock:", separated by commas.
const rightsEnv = "REQLOCK_TEST_ACL"

// adminUser is the administrator, which has no password.
const (
	adminUser  = "redistest-admin"
	noPassword = "nopass-takes-any" // Redis accepts any password for nopass
)

// MinimalRights reports whether the clients of the code under test have only Rights.
func MinimalRights() bool { return os.Getenv(rightsEnv) != "" }

// restricted returns the args that give only Rights to the default user. It returns none
// if the args of the server define that user themselves.
func restricted(args []string, cluster bool) []string {
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

// definesDefault reports whether args define the default user, which clients are that do
// not authenticate.
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

// administrator returns the user with all rights, or "" if the default user has them.
func (s *Server) administrator() string {
	if s.role == sentinel || restricted(s.args, false) == nil {
		return ""
	}
	return adminUser
}

// anybodysAdministrator returns the administrator of a server of which only the address is
// known.
func anybodysAdministrator() string {
	if !MinimalRights() {
		return ""
	}
	return adminUser
}

// Grant adds rights to the default user, if it is restricted, until the server restarts.
func (s *Server) Grant(rights ...string) {
	s.tb.Helper()
	if s.administrator() == "" {
		return
	}
	order := []any{"ACL", "SETUSER", "default"}
	for _, right := range rights {
		order = append(order, right)
	}
	s.mustRun(order...)
}

// PrefixRights returns the parts of Rights and ClusterRights that name keys and channels,
// for another prefix than "reqlock:".
func PrefixRights(prefix string) []string {
	if prefix == "" {
		return []string{"~*", "&*"}
	}
	escaped := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(prefix)
	var patterns []string
	for _, right := range strings.Fields(Rights + " " + ClusterRights) {
		if strings.Contains(right, "reqlock:") {
			patterns = append(patterns, strings.Replace(right, "reqlock:", escaped, 1))
		}
	}
	return patterns
}

// AdminClient returns a client of the server at addr for commands of the test itself. The
// cleanup of tb closes it.
func AdminClient(tb testing.TB, addr string) *redis.Client {
	tb.Helper()
	return newClient(tb, redis.Options{Addr: addr}, anybodysAdministrator(), nil)
}

// SignIn returns what a test must send first on a connection of its own. It is empty if
// the default user is not restricted.
func SignIn() string {
	if !MinimalRights() {
		return ""
	}
	return "AUTH " + adminUser + " " + noPassword + "\r\n"
}
