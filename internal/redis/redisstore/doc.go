// Package redisstore is the Redis side of the lock: the names of its keys, its
// scripts, how a command is sent, how this process is told to look again, and
// what an error of Redis means.
//
// # The wire
//
// A lock is one string key whose value is the holder's token, taken with
// SET key token NX PX ttl and freed by a script that deletes the key only if
// it still carries the token. Every client in any language that follows this
// classic recipe excludes this package and is excluded by it.
//
// Beside the lock K lie its waiting line {K}:q, a list of tokens, and its fence
// {K}:f, the last fencing number that was reserved. Each transition is one
// script, which is safe to send again: it reads all it needs, and fails on a
// key of a wrong type, before it writes anything. lease.lua, line.lua, fence.lua,
// ask.lua, leave.lua and record.lua are the parts that the scripts share; they are
// joined when loaded.
//
// # The record
//
// If K is the lock of an idempotent request, the hash {K}:r says what became of
// the attempts at it: see record.lua. begin.lua is enqueue.lua and a look at the
// record in one step, finish.lua the end of an attempt and the release of K. An
// attempt that outlived its lease may still be committed, unless another one has
// begun since. An abort leaves a mark for a minute, so that a late copy of its
// begin does not begin it again.
//
// # Hints
//
// A message "<token> <lock name>" says that the token was seen in the key, or that
// somebody waits for its holder. It says "look again" and grants nothing, so a lost
// or a forged one does no harm. The scripts give the key to the first waiter that
// listens, by the number of those whom the message reached. After each gap in a
// subscription all waiters that it served are told to look again.
//
// On a server alone, and behind Sentinel, each process has one channel, prefix and
// process id, and one connection that listens on it while anybody waits.
//
// In a cluster that number counts only who listens at the same node. So each
// process has one sharded channel for each key that it waits for, {K}:<process id>,
// which lies in the slot of K: SPUBLISH in a script counts who listens there. All
// channels at one master share one connection. A channel follows its slot: it is
// looked for anew when its connection ends, when the server takes it away or
// refuses it, and when the client's table of slots names another master. A replica
// lets us listen too, and is not where the scripts count, so a channel is looked
// after for some seconds after each change. While a slot is on its way, between MIGRATE
// and the end, nobody is counted for the keys that have moved: those waiters live
// by their timers.
//
// A cluster older than Redis 7 has no sharded channels. There the process listens
// on its one channel, and its scripts hand a key to the first waiter, whether it
// listens or not. One that does not costs the time of a claim.
//
// # How a command is sent
//
// Commands that come together leave together: see lane. What asks for keys has
// one lane, what renews and releases them another, so that neither waits for the
// other. Attempts have two lanes more, one to begin and one to finish, since their
// records may be big: 1 MiB is sent and read as it is, without a copy. In a cluster
// each master has such lanes of its own: see routes. An answer is told to a
// function, so no caller has to wait for it; one that waits anyhow may send on its
// own goroutine: see lead.
//
// The first words of a take and of a release are brief: SET NX without GET, and
// the token alone for a key for which nobody is known to wait. The long form
// follows where that does not do.
//
// What is needed for a command serves again for the next one, its arguments too.
// A hook that keeps a command beyond its call must copy what it wants of it.
//
// go-redis repeats a command by itself when a reply is lost. For SET NX that
// turns an owner into a loser: the second SET finds the first one's key. So
// each command here forbids go-redis to repeat it, and is re-sent at most once
// by this package, with the same token, which every script recognises. A
// command that outlives its bound is left behind; should its reply come late
// and say that it took the key, the hint function is told. The reply to one that
// its caller has sent counts as lost after 50 ms.
//
// # Replicas
//
// Where replicas have to acknowledge what is granted, a batch that grants is a
// pipeline with WAIT behind it, on one connection, in a cluster for each master; see
// acknowledge.go. Its lanes carry nothing else: what releases keys and aborts
// attempts has no WAIT, and does not stand behind one. WAIT counts what its own
// connection has written, so the scripts then write with each grant, also where they
// find it made, and a take is take.lua instead of SET NX. A hand-off is acknowledged with the
// confirmation of the receiver. Refusals are true without replicas.
//
// Too few of them is a fault of what was granted: it may be there and may yet be
// lost. It is not sent again here. Whoever asked asks again under the same token, or
// releases it; what is committed stays.
//
// In a cluster these batches are sent by master, since a pipeline of the cluster's
// client sends WAIT anywhere. A command that is redirected is sent to where it
// belongs, once, with a WAIT of its own, after the client has asked for the slots. A
// node that has no slot yet is not found; until it has one, its guests fail as they
// do where a slot has gone further meanwhile: by a fault that passes.
//
// # What a delayed SET can still do
//
// A SET that a network holds back, and delivers after its sender gave up and
// released, takes the key for nobody. The sender hears of it only if the reply
// still arrives; then the key is released again. Otherwise it falls by its TTL.
package redisstore
