package core_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A deployment is servers that the tests of the package share, and a prefix of keys that
// belongs to one test.
type deployment struct {
	*redistest.Deployment
	prefix string
}

// shared returns the servers of the kind that the tests of the package share, with a
// prefix of the test's own.
func shared(t *testing.T, kind redistest.Kind) *deployment {
	t.Helper()
	return &deployment{redistest.Shared(t, kind), redistest.OwnPrefix()}
}

// newLocker returns a Locker with the prefix of the test.
func (d *deployment) newLocker(t *testing.T, rdb redis.UniversalClient, opts ...core.Option) *core.Locker {
	t.Helper()
	return newLocker(t, rdb, append([]core.Option{core.WithPrefix(d.prefix)}, opts...)...)
}

// observed returns such a Locker, and the events that its observer receives.
func (d *deployment) observed(t *testing.T, rdb redis.UniversalClient, opts ...core.Option) (*core.Locker, *recorder) {
	t.Helper()
	return observed(t, rdb, append([]core.Option{core.WithPrefix(d.prefix)}, opts...)...)
}

// name returns the name in Redis of the lock with this key.
func (d *deployment) name(key string) string { return d.prefix + key }

// companion returns the name of the queue ("q"), the fence counter ("f") or the record
// ("r") that belongs to the lock with this key.
func (d *deployment) companion(key, suffix string) string {
	return "{" + d.name(key) + "}:" + suffix
}

// kindCases are the cases that have the same result on each kind of Redis.
var kindCases = map[string]func(t *testing.T, servers *deployment){
	"attempt commits and replays":                                testAttempt,
	"replayed attempt cannot be ended":                           testReplayedAttemptCannotBeEnded,
	"endings of an attempt":                                      testEndingsOfAnAttempt,
	"record lives for its retention":                             testRecordLivesForItsRetention,
	"record lives at least as long as the lease":                 testRecordLivesAsLongAsTheLease,
	"duplicates wait for the answer":                             testDuplicatesWaitForTheAnswer,
	"round trips of an attempt":                                  testRoundTripsOfAnAttempt,
	"attempt that died":                                          testAttemptThatDied,
	"nested attempt is part of the outer attempt":                testNestedAttemptIsPartOfTheOuter,
	"attempt that outlives the retention of its record":          testAttemptOutlivesRetention,
	"buffer is reused after commit":                              testBufferIsReusedAfterCommit,
	"buffer is reused during commit":                             testBufferIsReusedDuringCommit,
	"request runs after an abort that lost its lease":            testRequestAfterAbortThatLostItsLease,
	"abort at shutdown":                                          testAbortAtShutdown,
	"no RetryAfter where a retry does not help":                  testNoRetryAfterWhereRetryDoesNotHelp,
	"damaged record":                                             testDamagedRecord,
	"resolve during an attempt that has lost its lease":          testResolveDuringAttemptThatLostItsLease,
	"what an operator says about an unknown outcome":             testResolutions,
	"resolve compares the attempt":                               testResolveComparesTheAttempt,
	"resolve of a damaged record":                                testResolveOfDamagedRecord,
	"late commit after a resolve":                                testLateCommitAfterResolve,
	"unknown outcomes are reported":                              testUnknownOutcomesAreReported,
	"retention after a resolve":                                  testRetentionAfterResolve,
	"number after an aborted rerun":                              testNumberAfterAbortedRerun,
	"one of nine requests gets the lock":                         testOneOfNineGetsTheLock,
	"waiters of several processes exclude each other":            testWaitersOfSeveralProcesses,
	"key of a dead holder is free after its TTL":                 testKeyOfDeadHolderIsFreeAfterItsTTL,
	"classic recipe and reqlock exclude each other":              testClassicRecipe,
	"lease is lost when another client releases it by its token": testLeaseIsLostToItsOwnToken,
	"only the first waiter sends commands":                       testOnlyTheFirstWaiterSendsCommands,
	"handler that runs longer than the TTL keeps its lock":       testHandlerOutlivesTTL,

	"several keys":                             testSeveralKeys,
	"Extend lengthens the lease":               testExtend,
	"full queue refuses at once":               testFullQueueRefusesAtOnce,
	"lock passes from process to process":      testLockPassesBetweenProcesses,
	"fences rise after their counter was lost": testFencesRiseAfterLoss,
	"no fence without fencing":                 testNoFenceWithoutFencing,
	"empty value belongs to another client":    testEmptyValueBelongsToAnother,
	"deadline during a wait":                   testDeadlineDuringWait,

	"permits of several processes":       testPermitsOfSeveralProcesses,
	"permits are refused":                testPermitsAreRefused,
	"permits during a deploy":            testPermitsDuringDeploy,
	"permit of a dead holder":            testPermitOfDeadHolder,
	"readers together and writers alone": testReadersAndWriters,
	"writer is not starved by readers":   testWriterIsNotStarved,
	"classic recipe and shared leases":   testClassicRecipeAndSharedLeases,
	"fencing numbers of shared leases":   testFencesOfSharedLeases,
}

// TestOnEachKindOfRedis runs each case on each kind of Redis.
func TestOnEachKindOfRedis(t *testing.T) {
	t.Parallel()
	for _, kind := range redistest.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			for name, test := range kindCases {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					kind.SkipSentinels(t)
					test(t, shared(t, kind))
				})
			}
		})
	}
}

// onKinds runs the test on the first kind, and in the full tier also on the others.
func onKinds(t *testing.T, test func(t *testing.T, kind redistest.Kind), kinds ...redistest.Kind) {
	t.Helper()
	for i, kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			if i > 0 {
				suite.Full(t, "repeats the test on each kind of Redis")
			}
			test(t, kind)
		})
	}
}

// flush deletes all data.
func flush(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	err := redistest.EachMaster(t.Context(), rdb, func(master redis.Cmdable) error {
		return master.FlushAll(t.Context()).Err()
	})
	noError(t, err)
}
