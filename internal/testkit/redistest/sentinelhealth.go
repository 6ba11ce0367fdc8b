package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Master returns the server that all running sentinels name as the master. A killed or
// paused master remains the master until a replica is promoted.
func (s *Sentinels) Master() *Server {
	s.tb.Helper()
	var master *Server
	s.watch.await(s.tb, "sentinels that agree", func(ctx context.Context) (err error) {
		master, err = s.agreed(ctx)
		return err
	})
	return master
}

// Replicas returns the other servers, including those that do not run.
func (s *Sentinels) Replicas() []*Server {
	s.tb.Helper()
	master := s.Master()
	var replicas []*Server
	for _, server := range s.servers {
		if server != master {
			replicas = append(replicas, server)
		}
	}
	return replicas
}

// Await returns when the running processes are healthy: the sentinels agree on a running
// master and could replace it, and the other servers are replicas with all of its data,
// which the sentinels know. The old master of Split is ignored.
func (s *Sentinels) Await() {
	s.tb.Helper()
	s.all().await(s.tb, "healthy sentinels", func(ctx context.Context) error {
		_, err := s.healthy(ctx)
		return err
	})
}

// cutOff returns the longest time for which a running replica has had no link to its master.
func (s *Sentinels) cutOff() (longest time.Duration) {
	s.tb.Helper()
	for _, server := range s.servers.up() {
		info, err := server.admin().InfoMap(s.tb.Context(), "replication").Result()
		if err != nil {
			s.tb.Fatalf("INFO of %s: %v", server.Addr(), err)
		}
		seconds, err := strconv.Atoi(info["Replication"]["master_link_down_since_seconds"])
		if err == nil { // it is a replica, and its link is down
			longest = max(longest, time.Duration(seconds)*time.Second)
		}
	}
	return longest
}

func (s *Sentinels) all() group {
	return append(s.Servers(), s.watch...)
}

func (s *Sentinels) agreed(ctx context.Context) (*Server, error) {
	var master *Server
	for _, watcher := range s.watch.up() {
		address, err := watcher.admin().Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterName).Slice()
		if err != nil {
			return nil, fmt.Errorf("SENTINEL GET-MASTER-ADDR-BY-NAME of %s: %w", watcher.Addr(), err)
		}
		named := s.servers.at(joinAddr(address))
		if named == nil || master != nil && master != named {
			return nil, fmt.Errorf("sentinels do not agree: %s reports %v", watcher.Addr(), address)
		}
		master = named
	}
	if master == nil {
		return nil, errors.New("no sentinel runs")
	}
	return master, nil
}

// healthy returns the master, or an error that names what is not healthy.
func (s *Sentinels) healthy(ctx context.Context) (*Server, error) {
	master, err := s.agreed(ctx)
	if err != nil {
		return nil, err
	}
	if !master.isUp() {
		return nil, fmt.Errorf("the master %s does not run", master.Addr())
	}
	var replicas group
	for _, server := range s.servers.up() {
		if server == master || server == s.split {
			continue
		}
		if err := follows(ctx, server, master); err != nil {
			return nil, err
		}
		replicas = append(replicas, server)
	}
	for _, watcher := range s.watch.up() {
		if err := s.ready(ctx, watcher, master, replicas); err != nil {
			return nil, fmt.Errorf("sentinel %s: %w", watcher.Addr(), err)
		}
	}
	return master, nil
}

// ready returns an error unless the sentinel knows all servers and sentinels, and no failover
// is in progress.
func (s *Sentinels) ready(ctx context.Context, watcher, master *Server, replicas group) error {
	state := redis.NewMapStringStringCmd(ctx, "SENTINEL", "MASTER", MasterName)
	known := redis.NewMapStringStringSliceCmd(ctx, "SENTINEL", "REPLICAS", MasterName)
	for _, question := range []redis.Cmder{
		redis.NewCmd(ctx, "SENTINEL", "CKQUORUM", MasterName), state, known,
	} {
		if err := watcher.admin().Process(ctx, question); err != nil {
			return fmt.Errorf("%v: %w", question.Args()[:2], err)
		}
	}
	if state.Val()["flags"] != "master" || state.Val()["num-other-sentinels"] != strconv.Itoa(len(s.watch)-1) {
		return fmt.Errorf("not ready: %v", state.Val())
	}
	seen := 0
	for _, replica := range known.Val() {
		server := replicas.at(net.JoinHostPort(replica["ip"], replica["port"]))
		if server == nil {
			continue
		}
		if replica["flags"] != "slave" || replica["master-link-status"] != "ok" ||
			net.JoinHostPort(replica["master-host"], replica["master-port"]) != master.Addr() {
			return fmt.Errorf("replica not ready: %v", replica)
		}
		seen++
	}
	if seen != len(replicas) {
		return fmt.Errorf("knows %d replicas of %d", seen, len(replicas))
	}
	return nil
}
