package redistest

import (
	"os"
	"slices"
	"strings"
)

// Rights is what a user of Redis has to be granted for reqlock, and no more: the
// keys and channels of the prefix "reqlock:", and commands. A client of a cluster
// needs ClusterRights as well. README.md and the package documentation of core
// carry both, word by word.
const Rights = "~reqlock:* ~{reqlock:* &reqlock:* " +
	"+del +eval +evalsha +exists +get +hget +hmget +hset +lindex +llen +lpop +lpos +lrem +pexpire +pttl +publish +rpush +set +subscribe +time"

// ClusterRights is what a client of a cluster needs besides.
const ClusterRights = "&{reqlock:* +asking +cluster|slots +spublish +ssubscribe +sunsubscribe"

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
	if !MinimalRights() || slices.Contains(args, "--requirepass") || definesDefault(args) {
		return nil
	}
	rule := []string{"--user", adminUser, "on", "nopass", "~*", "&*", "+@all", "--user", "default", "on", "nopass", "resetchannels"}
	rule = append(rule, strings.Fields(Rights)...)
	if cluster {
		rule = append(rule, strings.Fields(ClusterRights)...)
	}
	for _, prefix := range strings.Split(os.Getenv(rightsEnv), ",")[1:] {
		rule = append(rule, Patterns(prefix)...)
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

// Grant grants the rights for keys of other prefixes than "reqlock:" too, where
// they are restricted, and until the server is started again.
func (s *Server) Grant(prefixes ...string) {
	s.tb.Helper()
	if s.administrator() == "" {
		return
	}
	order := []any{"ACL", "SETUSER", "default"}
	for _, prefix := range prefixes {
		for _, pattern := range Patterns(prefix) {
			order = append(order, pattern)
		}
	}
	s.tell(order...)
}

// Patterns returns the words of Rights and ClusterRights that name keys and
// channels, for another prefix.
func Patterns(prefix string) []string {
	var patterns []string
	for _, word := range strings.Fields(Rights + " " + ClusterRights) {
		if strings.Contains(word, "reqlock:") {
			patterns = append(patterns, strings.Replace(word, "reqlock:", prefix, 1))
		}
	}
	return patterns
}
