package fault

import (
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// refusals are the errors with which a server answers that can be reached.
func refusals() []Fault {
	return []Fault{
		refusal("NOSCRIPT", everywhere(), forgetful),
		refusal("OOM", everywhere(), configured("maxmemory", "1")),
		refusal("READONLY", alone(), replica),
		refusal("MASTERDOWN", alone(), both(configured("replica-serve-stale-data", "no"), replica)),
		refusal("NOREPLICAS", alone(), configured("min-replicas-to-write", "1")),
		refusal("MISCONF", alone(), diskless),
		asOperator(refusal("NOPERM", alone(), permitted("-@all", "-evalsha -eval", "resetkeys"))),
		asOperator(refusal("NOAUTH", alone(), both(permitted("resetpass >secret"), reconnected))),
		{Name: "answers-busy", On: alone(), Play: lasting("the server runs somebody's script", 0.2, 0.5, busy)},
		{Name: "answers-loading", On: alone(), Args: slowly(), Play: rounds(2, loading)},
		{Name: "answers-late", On: alone(), Play: lasting("the server pauses its clients", 0.1, 0.2, pausing)},
	}
}

// refusal is a fault in which the masters answer with errors of a class, until at
// least one was heard.
func refusal(class string, on []Deployment, breaks strike) Fault {
	return Fault{Name: "answers-" + strings.ToLower(class), On: on, Play: rounds(2, func(s *Scene) {
		s.during("the server answers "+class, nil, func() {
			before := s.refused(class)
			mend := breaks(s)
			s.await("an answer "+class, func() bool { return s.refused(class) > before })
			s.linger(0.3, 1.5)
			mend()
		})
	})}
}

// both breaks two things, and mends the later one first.
func both(first, second strike) strike {
	return func(s *Scene) func() {
		mendFirst := first(s)
		mendSecond := second(s)
		return func() {
			mendSecond()
			mendFirst()
		}
	}
}

// forgetful makes the masters forget all scripts, again and again.
func forgetful(s *Scene) func() {
	forget := func() { s.order("SCRIPT", "FLUSH") }
	forget()
	return func() {
		for range 10 {
			forget()
			s.linger(0.02, 0.1)
		}
	}
}

// replica makes the server the replica of a master that is not there.
func replica(s *Scene) func() {
	s.order("REPLICAOF", "127.0.0.1", "1")
	return func() { s.order("REPLICAOF", "NO", "ONE") }
}

// configured returns a strike that changes a setting of the masters.
func configured(name, value string) strike {
	return func(s *Scene) func() {
		was := ""
		s.masters(func(master redis.Cmdable) error {
			values, err := master.ConfigGet(s.Context(), name).Result()
			was = values[name] // they all have the same
			return err
		})
		s.order("CONFIG", "SET", name, value)
		return func() { s.order("CONFIG", "SET", name, was) }
	}
}

// busy runs a script for longer than the server lets its clients wait, until one
// of them was told so.
func busy(s *Scene) func() {
	mend := configured("busy-reply-threshold", "50")(s)
	before, steps := s.refused("BUSY"), 1<<23
	s.await("an answer BUSY", func() bool {
		steps *= 2 // a script has no clock that goes on while it runs
		s.script(`for i = 1, ARGV[1] do end`, s.someKey(), steps)
		return s.refused("BUSY") > before
	})
	return mend
}

// What the server loads slowly: so many keys, of a few kilobytes each, and how long
// it takes over each, in microseconds.
const (
	ballast     = 100
	ballastSize = 2048
	loadDelay   = "10000"
)

// slowly are the args of a server that takes its time to load its data.
func slowly() []string {
	return []string{"--key-load-delay", loadDelay, "--loading-process-events-interval-bytes", "1024"}
}

// loading restarts the server with its data, until somebody has asked it for a
// lock before it was ready.
func loading(s *Scene) {
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
			s.well() // else those who found nobody the last time wait with their next try
			s.Server.RestartWithData()
			return s.rejected() > 0
		})
		if err := s.Admin.Del(s.Context(), names...).Err(); err != nil {
			s.Fatalf("delete ballast: %v", err)
		}
	})
}

// pausing lets clients wait for an answer, all or those that write. It is over by
// itself: in the first mode nobody can tell the server.
func pausing(s *Scene) func() {
	mode := []string{"ALL", "WRITE"}[s.Random.IntN(2)]
	pause := time.Duration((0.3 + 2*s.Random.Float64()) * float64(s.TTL))
	s.order("CLIENT", "PAUSE", pause.Milliseconds(), mode)
	return func() {
		s.pass(pause)
		s.order("CLIENT", "UNPAUSE")
	}
}
