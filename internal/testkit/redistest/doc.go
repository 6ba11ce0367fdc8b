// Package redistest gives tests of a distributed lock the two things that a
// mock can not give: a real Redis, alone or many of them, and a network that
// fails on demand.
//
// A lock is right or wrong in the cases where a process does not know what
// happened: the SET was executed but its answer was lost, the SET was sent but
// arrived a minute later, the server stood still and then went on, the server
// came back with empty memory, another server took its place. [Server],
// [Cluster], [Sentinels] and [Proxy] make each of these cases happen at a chosen
// command instead of by luck.
//
// A [Server] is a redis-server process on a free loopback port. It can be
// frozen and thawed (Pause, Resume: a stalled machine), killed (Kill: a crash)
// and brought back on the same port with no data (Restart: a crash without
// persistence), with what its disk has (RestartFromDisk: a crash) or with all of
// it (RestartWithData: an upgrade). It ends with the test, however the test ends.
//
// A [Cluster] is six such servers, three masters with a replica each, and
// [Sentinels] are a master with two replicas and the three sentinels that watch
// them. Both are up within three seconds. Each of their servers can be treated
// as one that is alone; these are the faults that take several:
//
//	what happened to the servers                 what the test calls
//	-------------------------------------------  -----------------------------
//	the master crashed and was replaced          Failover
//	... and what it was told last is lost        RefuseReplicas(true) before it
//	... and only one of its replicas has it      RefuseMaster(true) of the other
//	... or it stood still, and went on           Pause, AwaitFailover, Resume
//	... and comes back, as a replica             Restart, Await
//	the master was replaced on purpose           Switch
//	... without asking anybody (cluster)         Takeover
//	two masters at once (sentinels)              Split, Heal
//	a slot moved to another master (cluster)     MoveSlot
//	... and is still on its way: ASK, TRYAGAIN   BeginMove, Keys, Finish
//
// A [Proxy] is a TCP proxy that understands just enough of the Redis protocol
// to know which reply belongs to which command. The faults are:
//
//	what happened in the network                 what the test calls
//	-------------------------------------------  -----------------------------
//	nothing gets through, nothing is closed      Partition
//	... and then everything arrives, late        Heal
//	... and then everything in flight is lost    HealDropped
//	the way is long, in both directions          Delay
//	all connections break, new ones work         Cut
//	the server is down                           Refuse(true), Refuse(false)
//	executed, but the answer is lost (closed)    DropReply(match, CloseConn)
//	executed, but the answer never comes         DropReply(match, KeepConn)
//	one command is late                          HoldCommand(match)
//	a pipeline breaks at a byte, either way      CutBatch(match, size, n, m)
//
// A typical test looks like this:
//
//	server := redistest.Start(t)
//	proxy := redistest.NewProxy(t, server.Addr())
//	client := proxy.Client(t)   // the client under test, on the bad network
//	observer := server.Client(t) // sees the truth, past the proxy
//
//	dropped := proxy.DropReply(redistest.Named("SET"), redistest.CloseConn)
//	... take the lock with client ...
//	<-dropped
//	... look at the key with observer ...
//
// The clients keep the retries that go-redis has by default: they are part of
// what production code meets. A SET whose reply is lost is sent again.
//
// Tests are skipped where redis-server is not installed, unless the
// environment variable REQLOCK_REQUIRE_REDIS is set to anything: then they
// fail, so that a build server can not pass by testing nothing.
//
// What must come out the same however Redis is run stands in one table, which
// runs on a [Deployment] of each of the [Kinds]. One Proxy is in front of all of
// its servers:
//
//	for _, kind := range redistest.Kinds() {
//		t.Run(kind.String(), func(t *testing.T) {
//			servers := kind.Start(t)
//			proxy := servers.Proxy(t)
//			client := servers.Client(t, redistest.Through(proxy))
//			...
//
// All goroutines and processes of the package end in the cleanup of the test
// that started them, so goleak can be used around it.
package redistest
