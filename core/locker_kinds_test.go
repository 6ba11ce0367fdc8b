package core_test

import (
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// kindCases are the cases that have the same result on each kind of Redis.
var kindCases = map[string]func(t *testing.T, servers *deployment){
	"attempt commits and replays":                       testAttempt,
	"replayed attempt cannot be ended":                  testReplayedAttemptCannotBeEnded,
	"endings of an attempt":                             testEndingsOfAnAttempt,
	"record lives for its retention":                    testRecordLivesForItsRetention,
	"round trips of an attempt":                         testRoundTripsOfAnAttempt,
	"nested attempt is part of the outer attempt":       testNestedAttemptIsPartOfTheOuter,
	"attempt that outlives the retention of its record": testAttemptOutlivesRetention,
	"buffer is reused after commit":                     testBufferIsReusedAfterCommit,
	"buffer is reused during commit":                    testBufferIsReusedDuringCommit,
	"damaged record":                                    testDamagedRecord,
	"resolve during an attempt that has lost its lease": testResolveDuringAttemptThatLostItsLease,
	"what an operator says about an unknown outcome":    testResolutions,
	"resolve compares the attempt":                      testResolveComparesTheAttempt,
	"resolve of a damaged record":                       testResolveOfDamagedRecord,
	"late commit after a resolve":                       testLateCommitAfterResolve,
	"unknown outcomes are reported":                     testUnknownOutcomesAreReported,
	"a copy learns the first request":                   testCopyLearnsFirstRequest,
	"a search reports unknown outcomes":                 testUnknownSearch,
	"an instance is registered":                         testInstance,
	"retention after a resolve":                         testRetentionAfterResolve,
	"number after an aborted rerun":                     testNumberAfterAbortedRerun,
	"classic recipe and reqlock exclude each other":     testClassicRecipe,

	"a ticket moves a lease to another process": testHandover,
	"a ticket that is not accepted":             testTicketIsNotAccepted,

	"several keys":                             testSeveralKeys,
	"Extend lengthens the lease":               testExtend,
	"full queue refuses at once":               testFullQueueRefusesAtOnce,
	"lock passes from process to process":      testLockPassesBetweenProcesses,
	"fences rise after their counter was lost": testFencesRiseAfterLoss,
	"no fence without fencing":                 testNoFenceWithoutFencing,
	"empty value belongs to another client":    testEmptyValueBelongsToAnother,
	"deadline during a wait":                   testDeadlineDuringWait,

	"permits are refused":              testPermitsAreRefused,
	"permits during a deploy":          testPermitsDuringDeploy,
	"classic recipe and shared leases": testClassicRecipeAndSharedLeases,
	"fencing numbers of shared leases": testFencesOfSharedLeases,
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
