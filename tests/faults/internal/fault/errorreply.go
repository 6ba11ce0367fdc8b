package fault

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// errorFaults returns the faults in which a reachable server replies with errors.
func errorFaults() []Fault {
	return []Fault{
		errorFault("NOSCRIPT", Deployments(), flushScripts),
		errorFault("OOM", Deployments(), configure("maxmemory", "1")),
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

// failSaves makes the server unable to save its data, so that it refuses writes.
func failSaves(s *System) func() {
	dir := s.Admin.ConfigGet(s.Context(), "dir").Val()["dir"]
	if dir == "" {
		s.Fatal("the server does not report the directory of its files")
	}
	heal := configure("save", "3600 1")(s) // the server refuses writes only if it is configured to save
	file := filepath.Join(dir, "dump.rdb")
	if err := os.MkdirAll(file, 0o700); err != nil { // the server cannot replace a directory with a file
		s.Fatalf("spoil %s: %v", file, err)
	}
	s.awaitSave("err")
	return func() {
		if err := os.Remove(file); err != nil {
			s.Fatalf("mend %s: %v", file, err)
		}
		s.awaitSave("ok")
		heal()
		if err := os.Remove(file); err != nil {
			s.Fatalf("delete %s: %v", file, err)
		}
	}
}

// awaitSave saves the data of the server, and waits for the result.
func (s *System) awaitSave(status string) {
	s.Helper()
	s.await("a save that ends "+status, func() bool {
		info := s.Admin.Info(s.Context(), "persistence").Val()
		if strings.Contains(info, "rdb_last_bgsave_status:"+status+"\r\n") && strings.Contains(info, "rdb_bgsave_in_progress:0\r\n") {
			return true
		}
		s.Admin.BgSave(s.Context()) // an error means that a save has already started
		return false
	})
}

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
