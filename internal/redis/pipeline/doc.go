// Package pipeline sends calls to Redis in batches, each with a deadline of its own.
//
// A Call is one operation with its sends. The Operation makes the command of each send,
// and receives the reply. The package depends on neither scripts nor keys.
//
// # Batches
//
// Commands that arrive together leave together: see lane. Each Class of calls waits in
// one lane, so that a slow one does not delay the others: a release never waits for a
// take, and neither waits for the records of attempts, which may be 1 MiB long and are
// sent without a copy. In a cluster each master has lanes of its own: see Pipeline.
//
// A single server gets several calls of one script as one command: see command.Joint. A cluster
// does not, because a script has keys of one slot only.
//
// A reply is passed to a function, so no caller has to wait for it. A caller that waits
// anyhow may run the batch on its own goroutine: see inline.go.
//
// # Resends
//
// A call is sent once, and a second time if the first send fails in transport or brings
// no reply in half of the bound. The first reply of the server decides. A call that has
// no reply when its bound ends fails with command.ErrNoReply; a reply that arrives later
// goes to Operation.Late. The reply to a command that its caller has sent inline counts as
// lost after store.InlineTime.
//
// While a server replies to no batch in time, a lane begins few batches: see congestion.go. A
// call that expires before it was sent has certainly not been applied.
//
// A hook of go-redis that keeps a command after its call must copy what it needs: the
// arguments are used again for the next command.
//
// # Replicas
//
// If replicas have to acknowledge writes, a batch is a pipeline with one WAIT at its end,
// on one connection: see acknowledge.go. Releases and aborts wait for no replicas, so they
// have lanes without WAIT. In a cluster such a batch is sent by master, because a pipeline
// of the cluster's client sends WAIT to any node. A redirected command is sent once to the
// node that the redirection names, with a WAIT of its own, after the client has loaded the
// slots. A node that has no slot yet is not found: its commands keep the error, which is a
// fault that passes.
package pipeline
