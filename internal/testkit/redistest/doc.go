// Package redistest starts real Redis servers for tests, and proxies that inject network
// faults at a chosen command.
//
// A lock is right or wrong in the cases in which a process does not know what happened: the
// server executed SET but the reply was lost, SET arrived a minute late, the server was
// stopped and resumed, the server restarted with empty memory, or another server took its
// place. [Server], [Cluster], [Sentinels] and [Proxy] produce each of these cases.
//
// A [Server] is a redis-server process on a free loopback port. A test can stop and resume
// it (Pause, Resume: a stalled machine), kill it (Kill: a crash) and restart it on the same
// port with no data (Restart: a crash without persistence), with the data on its disk
// (RestartFromDisk: a crash) or with all data (RestartWithData: an upgrade). It ends with the
// test, however the test ends.
//
// A [Cluster] is six such servers, three masters with a replica each, and
// [Sentinels] are a master with two replicas and the three sentinels that monitor them.
// Both are available within three seconds. Each of their servers is a [Server]. These are the
// faults of several servers:
//
//	what happened to the servers                 what the test calls
//	-------------------------------------------  -----------------------------
//	the master crashed and was replaced          Failover
//	... and its last writes are lost             RefuseReplicas(true) before it
//	... and only one of its replicas has them    RefuseMaster(true) of the other
//	... or it was stopped, and resumed           Pause, AwaitFailover, Resume
//	... and comes back, as a replica             Restart, Await
//	the master was replaced on purpose           Switch
//	... without an election (cluster)            Takeover
//	two masters at once (sentinels)              Split, Heal
//	a slot moved to another master (cluster)     MoveSlot
//	... and the move is in progress: ASK         BeginMove, Keys, Finish
//
// A [Proxy] is a TCP proxy that parses the Redis protocol to match replies with commands. The
// faults are:
//
//	what happened in the network                 what the test calls
//	-------------------------------------------  -----------------------------
//	no data arrives, no connection is closed     Partition
//	... and then everything arrives, late        Heal
//	... and then all data in flight is lost      HealDropped
//	latency, in both directions                  Delay
//	all connections break, new ones work         Cut
//	the server is down                           Refuse(true), Refuse(false)
//	executed, but the reply is lost (closed)     DropReply(match, CloseConn)
//	executed, but the reply never arrives        DropReply(match, KeepConn)
//	one command is late                          HoldCommand(match)
//	one reply is late                            HoldReply(match)
//	a pipeline breaks at a byte, either way      CutBatch(match, size, n, m)
//
// The clients keep the default retries of go-redis, because production code has them, too:
// go-redis resends a SET whose reply is lost.
//
// Tests are skipped if redis-server is not installed. If the environment variable
// REQLOCK_REQUIRE_REDIS is set they fail instead, so that CI cannot pass without them.
// REQLOCK_REDIS_SERVER is the path of another server, such as Valkey.
//
// Tests with the same result on each kind of Redis run on a [Deployment] of each of the
// [Kinds]. One Proxy is in front of all of its servers:
//
//	for _, kind := range redistest.Kinds() {
//		t.Run(kind.String(), func(t *testing.T) {
//			servers := kind.Start(t)
//			proxy := servers.Proxy(t)
//			client := servers.Client(t, redistest.Through(proxy))
//			...
//
// All goroutines and processes end in the cleanup of the test that started them. The servers
// of [Shared] and [Reuse] end after the last test of the package.
package redistest
