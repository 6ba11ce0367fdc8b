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

// A Finding is a problem that a Check has found, with the remedy.
type Finding struct {
	addr, text string
	cause      error
}

// Error returns one sentence. It contains no key, token or user name.
func (f *Finding) Error() string {
	if f.addr == "" {
		return f.text
	}
	return f.addr + ": " + f.text
}

// Unwrap returns the error of the server or of the client. It is nil for a warning.
func (f *Finding) Unwrap() error { return f.cause }

// finding converts an error to a *Finding. If ctx has ended, finding returns its error.
func (c *Check) finding(ctx context.Context, addr string, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return ctx.Err()
	}
	var refused *commandsError
	if errors.As(err, &refused) {
		return &Finding{addr, refused.Error(), refused.cause}
	}
	err = store.FaultOf(err).Err
	return &Finding{addr, c.advice(err), err}
}

// Explain returns a Finding for a failure of a command, as a Check would: what is wrong, and what to
// do. It does no I/O.
func Explain(rdb redis.UniversalClient, prefix string, replicas command.Replicas, err error) error {
	return &Finding{text: (&Check{rdb: rdb, prefix: prefix, replicas: replicas}).advice(err), cause: err}
}

// advice returns the text of a Finding: the problem and the remedy.
func (c *Check) advice(err error) string {
	if !command.IsTransport(err) {
		return c.adviceOnReply(err.Error())
	}
	var shortfall *command.ShortfallError
	var busy *command.BusyPoolError
	switch {
	case errors.As(err, &shortfall):
		return c.adviceOnShortfall(shortfall)
	case command.IsAnswered(err):
		return err.Error()
	case errors.Is(err, errNoSubscription), errors.Is(err, errNoMessage):
		return err.Error() + ", so redis cannot notify waiters: allow pub/sub on the server that has the locks, also in proxies and firewalls"
	case errors.Is(err, errNotKept):
		return err.Error() + ": let no other program use the keys of this prefix, set maxmemory-policy to noeviction, " +
			"and send all commands to one server, the master"
	case errors.As(err, &busy), errors.Is(err, redis.ErrPoolTimeout):
		return "reqlock gets no connection from the pool of the redis client (" + err.Error() + "), because other commands of this program, " +
			"such as blocking ones, use all of them, or because redis does not answer: give the Locker a client of its own, or raise PoolSize"
	case errors.Is(err, command.ErrNoReply):
		return "redis does not answer within the command timeout: check that it runs, its address, its load and the network, " +
			"use TLS on both sides or on neither, or raise WithCommandTimeout"
	case errors.Is(err, redis.ErrClosed):
		return "the redis client is closed: close it after the Locker"
	case command.IsMasterless(err):
		return "no Sentinel reports the master (" + err.Error() + "): check SentinelAddrs, MasterName, SentinelUsername and SentinelPassword " +
			"in the client's options"
	case isTLS(err):
		return "the TLS handshake fails (" + err.Error() + "): check the TLSConfig of the client and the certificate of the server"
	case command.IsUnsent(err):
		return "redis cannot be reached (" + err.Error() + "): check the address in the client's options, and that redis runs"
	default:
		return "the connection to redis fails (" + err.Error() + "): check that redis runs, that the address is that of redis, the network, and whether the server requires TLS"
	}
}

// adviceOnShortfall returns the text for missing replicas.
func (c *Check) adviceOnShortfall(shortfall *command.ShortfallError) string {
	return fmt.Sprintf("only %d of %d replicas acknowledge a write within %v: check INFO replication of the master and restore its replicas, "+
		"or set fewer replicas or a longer timeout in WithReplicas", shortfall.Count, shortfall.Wanted, c.replicas.Timeout)
}

// isTLS reports whether err is the failure of a TLS handshake.
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

// advices has the texts for error replies, by the prefix of the reply.
var advices = [...]struct{ prefix, advice string }{
	{"ERR Protocol error: unauthenticated", "redis requires a password: set Password in the client's options, and Username for a user of its ACL"},
	{"NOAUTH", "redis requires a password: set Password in the client's options, and Username for a user of its ACL"},
	{"WRONGPASS", "redis refuses the user or the password: set Username and Password in the client's options to those of an enabled user"},
	{"ERR invalid password", "redis refuses the password: set Password in the client's options"},
	{"ERR AUTH", "redis has no password: leave Password in the client's options empty"},
	{"DENIED", "redis is in protected mode and refuses clients on other machines: set a password in redis and in the client's options"},
	{"READONLY", "this redis is a read-only replica: connect to the master, without ReplicaOnly in the options of a failover client"},
	{"MASTERDOWN", "this redis is a replica that has lost its master: connect to the master"},
	{"LOADING", "redis is loading its data: wait until it is ready"},
	{"CLUSTERDOWN", "the cluster does not serve all slots: check CLUSTER INFO, and wait for the failover or repair the cluster"},
	{"TRYAGAIN", "the slot of the key is being moved: try again"},
	{"ERR DB index is out of range", "redis has no database with this number: check DB in the client's options"},
	{"MOVED", "this redis is a node of a cluster: make the client with redis.NewClusterClient"},
	{"ERR This instance has cluster support disabled", "this redis is not a cluster: make the client with redis.NewClient"},
	{"BUSY", "redis is busy with a script: wait until the script ends, or stop it with SCRIPT KILL"},
	{"OOM", "the memory of redis is full: raise maxmemory, or free memory"},
	{"MISCONF", "redis cannot save its data and refuses writes: free space on its disk, or set stop-writes-on-bgsave-error to no"},
	{"NOREPLICAS", "redis has fewer replicas than min-replicas-to-write: restore them, or lower min-replicas-to-write"},
	{"ERR max number of clients reached", "redis has reached its limit of connections: raise maxclients, or close connections"},
}

// adviceOnReply returns the text for an error reply of the server.
func (c *Check) adviceOnReply(reply string) string {
	for _, a := range advices {
		if strings.HasPrefix(reply, a.prefix) {
			return a.advice
		}
	}
	if isUnknown(reply) {
		return unknownAdvice(namedCommand(reply))
	}
	switch refusedRight(reply) {
	case rightToCommand:
		return commandAdvice(namedCommand(reply))
	case rightToKey:
		return "the user may not use the keys of the prefix: grant it " + patterns('~', c.prefix)
	case rightToChannel:
		return "the user may not use the channels of the prefix: grant it " + c.channels()
	case noRight:
	}
	return command.RedactUser(reply)
}

// channels returns the ACL patterns of the channels of hints.
func (c *Check) channels() string {
	if _, isCluster := c.rdb.(topology.Cluster); !isCluster {
		return "&" + keyspace.Escape(c.prefix) + "*"
	}
	return patterns('&', c.prefix)
}

// patterns returns the ACL patterns of the keys or channels of a lock.
func patterns(sign byte, prefix string) string {
	pattern := string(sign) + keyspace.Escape(prefix) + "*"
	if prefix == "" || keyspace.HasTag(prefix) {
		return pattern
	}
	return pattern + " and " + string(sign) + "{" + keyspace.Escape(prefix) + "*"
}

// A right is a kind of permission in an ACL.
type right int

const (
	noRight right = iota
	rightToCommand
	rightToKey
	rightToChannel
)

// refusedRight returns the right that is missing according to a reply. Redis 7.0 and 7.2 use
// different texts, and again other texts for errors in scripts.
func refusedRight(reply string) right {
	inScript := strings.HasPrefix(reply, "ERR ") && (strings.Contains(reply, "The user executing the script can't") ||
		strings.Contains(reply, "ACL failure in script"))
	switch {
	case !inScript && !strings.HasPrefix(reply, "NOPERM"):
		return noRight
	case strings.Contains(reply, "run the '"), strings.Contains(reply, "can't run this command"):
		return rightToCommand
	case strings.Contains(reply, "channel"):
		return rightToChannel
	case strings.Contains(reply, "key"):
		return rightToKey
	default:
		return noRight
	}
}

// unknownCommand matches the error reply to an unknown command. In the reply to a script, Redis
// adds its name. Valkey does not.
var unknownCommand = regexp.MustCompile(`(?i)^ERR (.*[: ])?unknown (redis |valkey )?command\b`)

// isUnknown reports whether a reply is the error of an unknown command.
func isUnknown(reply string) bool { return unknownCommand.MatchString(reply) }

// quoted matches the name of a command in a reply.
var quoted = regexp.MustCompile(`'([A-Za-z|_-]+)'`)

// namedCommand returns the command that a reply names, or "".
func namedCommand(reply string) string {
	if name := quoted.FindStringSubmatch(reply); name != nil {
		return strings.ToLower(name[1])
	}
	return ""
}

// commandAdvice returns the text for commands that the user may not run.
func commandAdvice(commands ...string) string {
	rights := strings.TrimSpace("+" + strings.Join(commands, " +"))
	if rights == "+" {
		rights = "all commands that reqlock needs"
	}
	return "the user may not run commands that reqlock needs: grant it " + rights
}

// unknownAdvice returns the text for commands that the server does not have.
func unknownAdvice(commands ...string) string {
	if slices.Contains(commands, "set") && slices.Contains(commands, "get") {
		return "this server has no SET and GET, so it may be a Sentinel: make the client with redis.NewFailoverClient, with this address in SentinelAddrs"
	}
	what := strings.ToUpper(strings.Join(commands, ", "))
	if what == "" {
		what = "a command that reqlock's scripts need"
	}
	return "redis does not have " + what +
		": reqlock needs redis 7.0 or newer with scripts and pub/sub, and without disabled or renamed commands"
}
