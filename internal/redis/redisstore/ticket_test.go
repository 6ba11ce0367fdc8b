package redisstore

import "github.com/reqlock/reqlock/internal/testkit/storetest"

// The token of the ticket of the tests is D1.
var (
	toTicket = releasing(func(r *storetest.AnyRequest) { r.Ticket, r.Keep = tokenOf("D1"), storetest.Claim })
	accept   = asking(withoutJoin, withTicket)
)

func withTicket(r *storetest.AnyRequest) { r.Ticket = tokenOf("D1") }

// Each transition runs twice. One that arrives late finds that the key has gone on.
var ticketTransitions = testsOf([]transitionRow{
	{name: "hand a lease over to a ticket: the queue stays", do: toTicket, listening: "B", before: "A1 ttl | B1", first: "freed", after: "D1 claim | B1"},
	{name: "hand a lease over to a ticket that lives longer", do: toTicket, before: "A1 1s", first: "freed", after: "D1 claim"},
	{name: "hand over a lease that another holds now", do: toTicket, before: "B1 ttl", first: "nothing", after: "="},
	{name: "hand over a lease that has ended", do: toTicket, before: "| B1", first: "nothing", after: "="},
	{name: "hand over a lease while shared leases are out", do: toTicket, before: "shared ttl | | | B1*=ttl", first: "nothing", after: "="},

	{name: "accept a ticket: the queue stays", do: accept, listening: "B", before: "D1 1h | B1 C1", first: "granted, waiting 2", after: "A1 ttl | B1 C1"},
	{name: "accept a ticket again: never a shorter TTL", do: accept, before: "A1 1h", first: "granted", after: "="},
	{name: "accept a ticket that another process has accepted", do: accept, before: "B1 ttl | C1", first: "nothing", after: "="},
	{name: "accept a ticket after its grace", do: accept, before: "| C1", first: "nothing", after: "="},
	{name: "accept a ticket while shared leases are out", do: accept, before: "shared ttl | | | B1*=ttl", first: "nothing", after: "="},
	{name: "accept a ticket that an operator has revoked", do: accept, before: grave("D1") + "! ttl", first: "nothing", after: "="},

	{name: "take a key that waits for a ticket", do: take, before: "D1 1h", first: "by D1", after: "="},
	{name: "enqueue behind a ticket: as behind a process that does not listen", do: enqueue, before: "D1 1h", first: "by D1, left 1h", after: "D1 1h | A1"},
	{name: "renew a lease that was handed over", do: renew, before: "D1 claim", first: "nothing", after: "="},
	{name: "release a lease that was handed over", do: release, before: "D1 claim | B1", first: "nothing", after: "="},
	{name: "revoke a ticket", do: revoking("D1"), before: "D1 40s", first: "revoked 1", after: grave("D1") + "! 40s"},
})
