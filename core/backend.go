package core

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/quorumstore"
	"github.com/reqlock/reqlock/internal/redis/readiness"
)

// A backend is what a Locker keeps its locks on: one deployment of Redis, or a quorum.
type backend interface {
	// newCheck returns a check of all servers for one run.
	newCheck(s *settings) check
	// advice says how to improve the options of the clients; nil if there is nothing to say.
	advice() error
	// keepsRecords reports whether the servers keep records of idempotent requests.
	keepsRecords() bool
	// servers returns the clients of the servers that get a record of the process each.
	servers() []redis.UniversalClient
	// close closes the connections that the Locker opened itself.
	close()
}

// A check finds out whether Redis does all that a Locker needs.
type check interface {
	// Run returns an error if Redis does not. Otherwise it returns warnings, if any.
	Run(ctx context.Context) (warnings []error, err error)
	// Close waits for the commands that Run has abandoned.
	Close()
}

// A deployment is the backend of New: one server, a master behind Sentinels, or a cluster.
type deployment struct {
	rdb    redis.UniversalClient
	passed *readiness.Passed
}

func (d deployment) newCheck(s *settings) check {
	c := readiness.NewCheck(d.rdb, s.prefix, s.commandTimeout, s.replicas, d.passed)
	c.Scans, c.Registers = s.unknownSearch > 0, s.instance != nil
	return c
}

func (d deployment) advice() error { return readiness.AdviseOnClient(d.rdb) }

func (deployment) keepsRecords() bool { return true }

func (d deployment) servers() []redis.UniversalClient { return []redis.UniversalClient{d.rdb} }

func (deployment) close() {} // the caller of New closes the client

// A quorum is the backend of NewQuorum.
type quorum struct {
	store  *quorumstore.Store
	passed []readiness.Passed // of each server
}

func (q quorum) newCheck(s *settings) check {
	c := readiness.NewQuorum(q.store.Clients(), s.prefix, s.commandTimeout, q.passed, q.store.Duplicate)
	c.Registers = s.instance != nil
	return c
}

func (q quorum) advice() error {
	for _, client := range q.store.Clients() {
		if err := readiness.AdviseOnClient(client); err != nil {
			return err
		}
	}
	return nil
}

func (quorum) keepsRecords() bool { return false }

func (q quorum) servers() (clients []redis.UniversalClient) {
	for _, client := range q.store.Clients() {
		clients = append(clients, client)
	}
	return clients
}

func (q quorum) close() { _ = q.store.Disconnect() } // a second call returns an error
