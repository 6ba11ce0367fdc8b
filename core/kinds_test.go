package core_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A kindCase is what comes out the same however Redis is run.
type kindCase struct {
	name string
	run  func(t *testing.T, servers *redistest.Deployment)
}

// kindCases are in the files of what they are about.
func kindCases() []kindCase {
	return []kindCase{
		{"an attempt", anAttempt},
		{"an answer is not an attempt", anAnswerIsNotAnAttempt},
		{"how an attempt ends", howAnAttemptEnds},
		{"a record lives as long as it is kept", aRecordLivesAsLongAsItIsKept},
		{"a record lives as long as a lease", aRecordLivesAsLongAsALease},
		{"duplicates wait for the answer", duplicatesWaitForTheAnswer},
		{"round trips of an attempt", roundTripsOfAnAttempt},
		{"an attempt that died", anAttemptThatDied},
		{"a nested attempt is a part of the outer one", aNestedAttemptIsAPartOfTheOuterOne},

		{"a buffer that is used again after commit", aBufferThatIsUsedAgainAfterCommit},
		{"a buffer that is used again while it is committed", aBufferThatIsUsedAgainWhileItIsCommitted},
		{"the next request after an abort that lost its lease", theNextRequestAfterAnAbortThatLostItsLease},
		{"an abort at shutdown", anAbortAtShutdown},
		{"retry after of what does not pass", retryAfterOfWhatDoesNotPass},
		{"a damaged record", aDamagedRecord},

		{"resolve while an attempt runs that has lost its lease", resolveWhileAnAttemptRunsThatHasLostItsLease},
		{"the number after a rerun that was aborted", theNumberAfterARerunThatWasAborted},

		{"of nine one wins", ofNineOneWins},
		{"waiters of many processes exclude each other", waitersOfManyProcessesExcludeEachOther},
		{"a holder that dies frees the key at its TTL", aHolderThatDiesFreesTheKeyAtItsTTL},
		{"the classic recipe excludes us and is excluded", theClassicRecipeExcludesUsAndIsExcluded},
		{"we are told when our token is used to release it", weAreToldWhenOurTokenIsUsedToReleaseIt},
		{"only the head of the line asks Redis", onlyTheHeadOfTheLineAsksRedis},

		{"several keys", severalKeys},
		{"extend lives longer", extendLivesLonger},

		{"a line that is full refuses at once", aLineThatIsFullRefusesAtOnce},
		{"a lock is handed from process to process", aLockIsHandedFromProcessToProcess},
		{"fences rise whatever happens to their counter", fencesRiseWhateverHappensToTheirCounter},
		{"without fencing no fencing work is done", withoutFencingNoFencingWorkIsDone},

		{"an empty value is anothers", anEmptyValueIsAnothers},

		{"a deadline in the middle of a wait", aDeadlineInTheMiddleOfAWait},
	}
}

// longCases are those that mostly wait. They do so beside each other: each has keys
// of its own.
func longCases() []kindCase {
	return []kindCase{
		{"a request that runs for longer than its record is kept", aRequestThatRunsForLongerThanItsRecordIsKept},
		{"a handler that runs three TTLs keeps its lock", aHandlerThatRunsThreeTTLsKeepsItsLock},
	}
}

// TestOnEachKindOfRedis runs each case on each kind, on servers that the cases
// share, and which have no data at its beginning.
//
//faults:row 21: "fences rise whatever happens to their counter"
//faults:row 44: "several keys"
func TestOnEachKindOfRedis(t *testing.T) {
	for _, kind := range redistest.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			servers := kind.Start(t)
			admin := servers.Client(t)
			for _, c := range kindCases() {
				t.Run(c.name, func(t *testing.T) {
					loseAll(t, admin)
					c.run(t, servers)
				})
			}
			loseAll(t, admin)
			for _, c := range longCases() {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					c.run(t, servers)
				})
			}
		})
	}
}

// loseAll deletes all data.
func loseAll(t *testing.T, admin redis.UniversalClient) {
	t.Helper()
	err := redistest.EachMaster(t.Context(), admin, func(master redis.Cmdable) error {
		return master.FlushAll(t.Context()).Err()
	})
	if err != nil {
		t.Fatal(err)
	}
}
