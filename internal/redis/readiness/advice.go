package readiness

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/topology"
	"github.com/reqlock/reqlock/internal/store"
)

// A Finding is what a Check has found, and what to do about it.
type Finding struct {
	addr, says string
	cause      error
}

// Error returns one sentence, in which there is no key, token or user.
func (f *Finding) Error() string {
	if f.addr == "" {
		return f.says
	}
	return f.addr + ": " + f.says
}

// Unwrap returns what the server or the client said; nil where that is nothing.
func (f *Finding) Unwrap() error { return f.cause }

// finding words an error, unless it is the end of ctx.
func (c *Check) finding(ctx context.Context, addr string, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return ctx.Err()
	}
	var lacking *lackError
	if errors.As(err, &lacking) {
		return &Finding{addr, lacking.Error(), lacking.cause}
	}
	var fault *store.Fault
	if errors.As(err, &fault) {
		err = fault.Err
	}
	return &Finding{addr, c.advice(err), err}
}

// advice says what is wrong, and what to do.
func (c *Check) advice(err error) string {
	if !command.IsTransport(err) {
		return c.adviceOnReply(err.Error())
	}
	var short *command.ShortfallError
	switch {
	case errors.As(err, &short):
		return c.adviceOnShort(short)
	case errors.Is(err, errNoSubscription), errors.Is(err, errNoMessage):
		return err.Error() + ", so that waiters are not told of their turn: let pub/sub through to redis, on the server that holds the locks"
	case errors.Is(err, errForgets):
		return err.Error() + ": keep others off the keys of this prefix, set maxmemory-policy to noeviction, " +
			"and send all commands to one server, the master"
	case errors.Is(err, command.ErrNoReply):
		return "redis does not answer within the command timeout: look at its address, its load and the network, " +
			"let both sides or none speak TLS, or raise WithCommandTimeout"
	case errors.Is(err, redis.ErrClosed):
		return "the redis client is closed: close it after the Locker"
	case command.IsMasterless(err):
		return "no Sentinel names the master (" + err.Error() + "): look at SentinelAddrs, MasterName, SentinelUsername and SentinelPassword " +
			"in the client's options"
	case isTLS(err):
		return "no TLS connection comes about (" + err.Error() + "): look at the TLSConfig of the client and the certificate of the server"
	case command.IsUnsent(err):
		return "redis cannot be reached (" + err.Error() + "): look at the address in the client's options, and whether redis runs"
	default:
		return "the connection to redis fails (" + err.Error() + "): look at the network, and whether the server wants TLS"
	}
}

// adviceOnShort says what to do about replicas that are not there.
func (c *Check) adviceOnShort(short *command.ShortfallError) string {
	return fmt.Sprintf("only %d of %d replicas acknowledge a write within %v: look at INFO replication of the master and bring its replicas back, "+
		"or ask for fewer or wait longer by WithReplicas", short.Count, short.Wanted, c.replicas.Timeout)
}

// isTLS reports whether two sides could not agree on an encrypted connection.
func isTLS(err error) bool {
	var header tls.RecordHeaderError
	var alert tls.AlertError
	var certificate *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var remote *net.OpError
	return errors.As(err, &header) || errors.As(err, &alert) || errors.As(err, &certificate) || errors.As(err, &authority) ||
		errors.As(err, &host) || errors.As(err, &remote) && remote.Op == "remote error"
}

// advices says what to do about a reply that begins so.
var advices = [...]struct{ reply, advice string }{
	{"NOAUTH", "redis wants a user and a password: set Username and Password in the client's options"},
	{"WRONGPASS", "redis refuses the user or the password: set Username and Password in the client's options to those of a user that is on"},
	{"ERR invalid password", "redis refuses the password: set Password in the client's options"},
	{"ERR AUTH", "redis has no password: leave Password in the client's options empty"},
	{"DENIED", "redis is in protected mode, and takes no commands from other machines: give its user a password"},
	{"READONLY", "this redis is a read-only replica: connect to the master, without ReplicaOnly in the options of a failover client"},
	{"MASTERDOWN", "this redis is a replica that has lost its master: connect to the master"},
	{"LOADING", "redis is loading its data: wait until it has"},
	{"CLUSTERDOWN", "the cluster does not serve all slots: look at CLUSTER INFO, and wait for its failover or repair it"},
	{"TRYAGAIN", "the slot of the key is being moved: try again"},
	{"ERR DB index is out of range", "redis has no database of this number: look at DB in the client's options"},
	{"MOVED", "this redis is a node of a cluster: make the client with redis.NewClusterClient"},
	{"ERR This instance has cluster support disabled", "this redis is not a cluster: make the client with redis.NewClient"},
	{"BUSY", "redis is busy with somebody's script: wait for its end, or end it with SCRIPT KILL"},
	{"OOM", "the memory of redis is full: raise maxmemory, or free some"},
	{"MISCONF", "redis cannot save its data and takes no writes: free its disk, or set stop-writes-on-bgsave-error to no"},
	{"NOREPLICAS", "redis has fewer replicas than min-replicas-to-write: bring them back, or lower it"},
	{"ERR max number of clients reached", "redis has as many connections as it takes: raise maxclients, or close some"},
}

// adviceOnReply says what to do about a reply of the server.
func (c *Check) adviceOnReply(said string) string {
	for _, a := range advices {
		if strings.HasPrefix(said, a.reply) {
			return a.advice
		}
	}
	if isUnknown(said) {
		return unknownAdvice(namedCommand(said))
	}
	switch refusedRight(said) {
	case rightToCommand:
		return commandAdvice(namedCommand(said))
	case rightToKey:
		return "the user may not use the keys of the prefix: grant it " + patterns('~', c.prefix)
	case rightToChannel:
		return "the user may not use the channels of the prefix: grant it " + c.channels()
	case noRight:
	}
	return command.RedactUser(said)
}

// channels are the patterns of the channels on which hints come.
func (c *Check) channels() string {
	if _, isCluster := c.rdb.(topology.Cluster); !isCluster {
		return "&" + escaped(c.prefix) + "*"
	}
	return patterns('&', c.prefix)
}

// patterns returns the ACL patterns of a lock and its companions.
func patterns(sign byte, prefix string) string {
	pattern := string(sign) + escaped(prefix) + "*"
	if prefix == "" || keyspace.HasTag(prefix) {
		return pattern
	}
	return pattern + " and " + string(sign) + "{" + escaped(prefix) + "*"
}

// escaped returns the prefix for a pattern, in which it stands for itself.
func escaped(prefix string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(prefix)
}

// A right is what an ACL grants.
type right int

const (
	noRight right = iota
	rightToCommand
	rightToKey
	rightToChannel
)

// refusedRight returns which right a reply says is missing. Redis 6, 7.0 and 7.2
// word it in their own ways, and in scripts once more.
func refusedRight(said string) right {
	inScript := strings.HasPrefix(said, "ERR ") && (strings.Contains(said, "The user executing the script can't") ||
		strings.Contains(said, "ACL failure in script"))
	switch {
	case !inScript && !strings.HasPrefix(said, "NOPERM"):
		return noRight
	case strings.Contains(said, "run the '"), strings.Contains(said, "can't run this command"):
		return rightToCommand
	case strings.Contains(said, "channel"):
		return rightToChannel
	case strings.Contains(said, "key"):
		return rightToKey
	default:
		return noRight
	}
}

// unknownCommand matches a reply that says that there is no such command. Redis names
// itself in the reply to a script, Redis 6 also puts the place in the script first, and
// Valkey does not name itself.
var unknownCommand = regexp.MustCompile(`(?i)^ERR (.*[: ])?unknown (redis |valkey )?command\b`)

// isUnknown reports whether a reply says that there is no such command.
func isUnknown(said string) bool { return unknownCommand.MatchString(said) }

// quoted is the name of a command in a reply. Redis 6 quotes it with backticks.
var quoted = regexp.MustCompile("['`]([A-Za-z|_-]+)['`]")

// namedCommand returns the command that a reply is about, or "".
func namedCommand(said string) string {
	if name := quoted.FindStringSubmatch(said); name != nil {
		return strings.ToLower(name[1])
	}
	return ""
}

// commandAdvice says what to do where commands are refused to the user.
func commandAdvice(commands ...string) string {
	rights := strings.TrimSpace("+" + strings.Join(commands, " +"))
	if rights == "+" {
		rights = "all commands that reqlock needs"
	}
	return "the user may not run commands that reqlock needs: grant it " + rights
}

// unknownAdvice says what to do where a server does not know commands.
func unknownAdvice(commands ...string) string {
	if slices.Contains(commands, "set") && slices.Contains(commands, "get") {
		return "this keeps no keys, so it may be a Sentinel: make the client with redis.NewFailoverClient, and its address one of SentinelAddrs"
	}
	what := strings.ToUpper(strings.Join(commands, ", "))
	if what == "" {
		what = "a command that reqlock's scripts need"
	}
	return "redis does not know " + what +
		": it takes redis 6.0.6 or newer that runs scripts and has pub/sub, and no command that is disabled or renamed"
}
