package fault

import (
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// errorFaults returns the faults in which a reachable server replies with errors.
func errorFaults() []Fault {
	return []Fault{
		errorFault("NOSCRIPT", allDeployments(), flushScripts),
		errorFault("OOM", allDeployments(), configure("maxmemory", "1")),
		errorFault("READONLY", singleServer(), makeReplica),
		errorFault("MASTERDOWN", singleServer(), both(configure("replica-serve-stale-data", "no"), makeReplica)),
		errorFault("NOREPLICAS", singleServer(), configure("min-replicas-to-write", "1")),
		errorFault("MISCONF", singleServer(), failSaves),
		withOperator(errorFault("NOPERM", singleServer(), setRights("-@all", "-evalsha -eval", "resetkeys"))),
		withOperator(errorFault("NOAUTH", singleServer(), both(setRights("resetpass >secret"), killConnections))),
		{Name: "answers-busy", On: singleServer(), Inject: injectTwice("the server runs a long script", 0.2, 0.5, runLongScript)},
		{Name: "answers-loading", On: singleServer(), Args: slowLoading(), Inject: repeat(2, restartLoading)},
		{Name: "answers-late", On: singleServer(), Inject: injectTwice("the server pauses its clients", 0.1, 0.2, pauseClients)},
	}
}

// errorFault is a fault in which the masters reply with errors of a class. It lasts until
// at least one client got such a reply.
func errorFault(class string, on []Deployment, inject injector) Fault {
	return Fault{Name: "answers-" + strings.ToLower(class), On: on, Inject: repeat(2, func(s *System) {
		s.during("the server answers "+class, nil, func() {
			before := s.errorReplies(class)
			heal := inject(s)
			s.await("an answer "+class, func() bool { return s.errorReplies(class) > before })
			s.runFor(0.3, 1.5)
			heal()
		})
	})}
}

// both injects two failures. It heals the second one first.
func both(first, second injector) injector {
	return func(s *System) func() {
		mendFirst := first(s)
		mendSecond := second(s)
		return func() {
			mendSecond()
			mendFirst()
		}
	}
}

// flushScripts makes the masters delete all scripts, several times.
func flushScripts(s *System) func() {
	forget := func() { s.command("SCRIPT", "FLUSH") }
	forget()
	return func() {
		for range 10 {
			forget()
			s.runFor(0.02, 0.1)
		}
	}
}

// makeReplica makes the server a replica of a master that does not exist.
func makeReplica(s *System) func() {
	s.command("REPLICAOF", "127.0.0.1", "1")
	return func() { s.command("REPLICAOF", "NO", "ONE") }
}

// configure returns an injector that changes a setting of the masters.
func configure(name, value string) injector {
	return func(s *System) func() {
		was := ""
		s.eachMaster(func(master redis.Cmdable) error {
			values, err := master.ConfigGet(s.Context(), name).Result()
			was = values[name] // all masters have the same value
			return err
		})
		s.command("CONFIG", "SET", name, value)
		return func() { s.command("CONFIG", "SET", name, was) }
	}
}

// runLongScript runs a script for so long that the server replies BUSY to a client.
func runLongScript(s *System) func() {
	heal := configure("busy-reply-threshold", "50")(s)
	before, steps := s.errorReplies("BUSY"), 1<<23
	s.await("an answer BUSY", func() bool {
		steps *= 2 // a script cannot measure time: the clock stands while it runs
		s.script(`for i = 1, ARGV[1] do end`, s.someKey(), steps)
		return s.errorReplies("BUSY") > before
	})
	return heal
}

// While it loads, the server reads this many keys of this many bytes, and waits this many
// microseconds for each.
const (
	ballast     = 100
	ballastSize = 2048
	loadDelay   = "10000"
)

// slowLoading returns the arguments of a server that loads its data slowly.
func slowLoading() []string {
	return []string{"--key-load-delay", loadDelay, "--loading-process-events-interval-bytes", "1024"}
}

// restartLoading restarts the server with its data, until the server has rejected a command
// of a lock because it was loading.
func restartLoading(s *System) {
	s.during("the server loads its data", nil, func() {
		pipe := s.Admin.Pipeline()
		names := make([]string, ballast)
		for i := range names {
			names[i] = "ballast:" + strconv.Itoa(i)
			pipe.Set(s.Context(), names[i], strings.Repeat("x", ballastSize), 0)
		}
		if _, err := pipe.Exec(s.Context()); err != nil {
			s.Fatalf("write ballast: %v", err)
		}
		s.await("a command while the server loads", func() bool {
			s.awaitGrants() // clients that found no server in the last round wait before they connect again
			s.Server.RestartWithData()
			return s.rejectedCommands() > 0
		})
		if err := s.Admin.Del(s.Context(), names...).Err(); err != nil {
			s.Fatalf("delete ballast: %v", err)
		}
	})
}

// pauseClients delays all commands, or all writes, for a time. The pause ends by itself: in
// the first mode the server reads no command that would end it.
func pauseClients(s *System) func() {
	mode := []string{"ALL", "WRITE"}[s.Random.IntN(2)]
	pause := time.Duration((0.3 + 2*s.Random.Float64()) * float64(s.TTL))
	s.command("CLIENT", "PAUSE", pause.Milliseconds(), mode)
	return func() {
		s.sleep(pause)
		s.command("CLIENT", "UNPAUSE")
	}
}
