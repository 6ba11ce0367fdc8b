// Package script holds the Lua scripts of the lock protocol, and their digests.
//
// Each transition of a lock is one script. A script is safe to send again. Before its first
// write it has used each key that it needs, so it changes nothing if one has a wrong type. The
// first write needs no memory where a lease ends, so that leases end on a full server, too.
//
// New joins scripts from parts, each a file. A script has the name of its last part. The first
// line of a file names in "(after ...)" the parts that it needs ahead of it, or says which
// scripts it begins. token.lua begins each script that compares the value of K with a token.
// free.lua, turn.lua, done.lua, sharedtake.lua, sharedbeside.lua, sharedfree.lua and sharedend.lua answer the common cases of a script
// first.
//
// The scripts whose names begin with "shared" are those of shared leases: marker.lua says
// what is stored. Exclusive leases have scripts of their own. If K has the marker of shared
// leases, such a script changes nothing, and the client sends the script of shared leases,
// which handles both kinds. So a key without shared leases costs what it would cost if there
// were none. A script of exclusive leases may hand K to a shared token of the queue as to any
// other; that token turns K into a marker when it confirms the grant.
//
// freemany.lua is the short form of release.lua for several locks. An error about one of them leaves
// that one unchanged, and the others are freed.
//
// rights.lua is no transition: only the key of a Check has it. compare.lua is none either: it reads
// the locks of many waiters.
//
// Models of the waiting queue, the shared leases, the fence, the record, revoked leases and tickets are in
// the folder model.
package script

import (
	"crypto/fips140"
	"crypto/sha1" //nolint:gosec // Redis names a script by its SHA-1, and the scripts an attempt.
	_ "embed"
	"encoding/hex"
	"strconv"
	"strings"
)

// The parts that scripts share come first, then the scripts.
var (
	//go:embed token.lua
	tokenPart string
	//go:embed lease.lua
	leasePart string
	//go:embed queue.lua
	queuePart string
	//go:embed fence.lua
	fencePart string
	//go:embed ask.lua
	askPart string
	//go:embed leave.lua
	leavePart string
	//go:embed state.lua
	statePart string
	//go:embed record.lua
	recordPart string
	//go:embed free.lua
	freePart string

	//go:embed take.lua
	takeSource string
	//go:embed turn.lua
	turnPart string
	//go:embed enqueue.lua
	enqueueSource string
	//go:embed renew.lua
	renewSource string
	//go:embed release.lua
	releaseSource string
	//go:embed freemany.lua
	freeManySource string
	//go:embed keep.lua
	keepSource string
	//go:embed handover.lua
	handoverSource string
	//go:embed accept.lua
	acceptSource string
	//go:embed done.lua
	donePart string
	//go:embed begin.lua
	beginSource string
	//go:embed finish.lua
	finishSource string
	//go:embed resolve.lua
	resolveSource string
	//go:embed revoke.lua
	revokeSource string
	//go:embed outcome.lua
	outcomeSource string
	//go:embed vote.lua
	voteSource string
	//go:embed withdraw.lua
	withdrawSource string
	//go:embed rights.lua
	rightsSource string
	//go:embed compare.lua
	compareSource string

	//go:embed marker.lua
	markerPart string
	//go:embed clock.lua
	clockPart string
	//go:embed sharedtake.lua
	sharedTakePart string
	//go:embed sharedbeside.lua
	sharedBesidePart string
	//go:embed sharedfree.lua
	sharedFreePart string
	//go:embed sharedend.lua
	sharedEndPart string
	//go:embed shared.lua
	sharedPart string
	//go:embed admit.lua
	admitPart string
	//go:embed phase.lua
	phasePart string
	//go:embed sharedask.lua
	sharedAskSource string
	//go:embed sharedrelease.lua
	sharedReleaseSource string
	//go:embed sharedrenew.lua
	sharedRenewSource string
	//go:embed sharedrenewapart.lua
	sharedRenewApartSource string
)

// Set holds each script with its digest.
type Set struct {
	Take, Enqueue, Renew, Release, FreeMany, Keep, Handover, Accept, Begin, Finish, Resolve, Outcome, Revoke, Vote, Withdraw, Rights, Compare Script

	// The scripts of shared leases.
	SharedAsk, SharedRelease, SharedRenew, SharedRenewApart Script
}

// The line before shared.lua says which key is the set of shared leases.
const (
	setIsSecond = "local S = KEYS[2]\n"
	setIsThird  = "local S = KEYS[3]\n"
)

// The line before free.lua is the reply to its short form: for release.lua, 5 says that the server has DELIFEQ, as Valkey has since 9.0.
const (
	freedByServer = "local freed = (redis.VALKEY_VERSION_NUM or 0) >= 0x90000 and 5 or 1\n"
	freedAlways   = "local freed = 1\n"
)

// New returns the scripts. durable says whether replicas have to acknowledge grants: see
// lease.lua.
func New(durable bool) Set {
	mode := "local durable = " + strconv.FormatBool(durable) + "\n"
	return Set{
		Take:    newScript(tokenPart, mode, takeSource),
		Enqueue: newScript(tokenPart, turnPart, mode, leasePart, queuePart, fencePart, askPart, enqueueSource),
		Renew:   newScript(tokenPart, mode, leasePart, fencePart, statePart, renewSource),
		Release: newScript(tokenPart, freedByServer, freePart, mode, leasePart, queuePart, leavePart, releaseSource),
		Keep:    newScript(tokenPart, keepSource),
		Accept:  newScript(tokenPart, mode, leasePart, fencePart, acceptSource),
		Begin:   newScript(tokenPart, statePart, donePart, mode, leasePart, queuePart, leavePart, fencePart, askPart, recordPart, beginSource),
		Finish:  newScript(tokenPart, mode, leasePart, queuePart, leavePart, statePart, recordPart, finishSource),
		Resolve: newScript(tokenPart, statePart, resolveSource),
		Outcome: newScript(tokenPart, statePart, outcomeSource),
		Revoke:  newScript(tokenPart, revokeSource),

		FreeMany: newScript(tokenPart, freedByServer, freeManySource),
		Handover: newScript(tokenPart, handoverSource),

		Vote:     newScript(tokenPart, mode, leasePart, queuePart, voteSource),
		Withdraw: newScript(tokenPart, freedAlways, freePart, mode, leasePart, queuePart, withdrawSource),
		Rights:   newScript(tokenPart, rightsSource),
		Compare:  newScript(compareSource),

		SharedAsk: newScript(tokenPart, sharedTakePart, markerPart, clockPart, sharedBesidePart, mode, leasePart, queuePart, fencePart,
			setIsThird, sharedPart, admitPart, phasePart, sharedAskSource),
		SharedRelease: newScript(tokenPart, markerPart, sharedFreePart, clockPart, sharedEndPart, mode, leasePart, queuePart,
			setIsThird, sharedPart, admitPart, sharedReleaseSource),
		SharedRenew: newScript(markerPart, clockPart, mode, leasePart, fencePart, setIsSecond, sharedPart, phasePart, sharedRenewSource),

		SharedRenewApart: newScript(sharedRenewApartSource),
	}
}

// A Script is a Lua source and its SHA-1, by which EVALSHA names it. Both are strings,
// converted to any once, so that a command with them allocates nothing.
type Script struct{ Source, SHA any }

// newScript joins the parts to one script.
func newScript(parts ...string) Script {
	source := strings.Join(parts, "")
	return Script{Source: source, SHA: Digest(source)}
}

// Digest returns the SHA-1 of a text as Redis and the scripts write it. It may compute the SHA-1
// under GODEBUG=fips140=only, because the SHA-1 is a name of a script or of an attempt, and protects
// nothing.
func Digest(text string) string {
	var sum [sha1.Size]byte
	fips140.WithoutEnforcement(func() { sum = sha1.Sum([]byte(text)) }) //nolint:gosec // see above
	return hex.EncodeToString(sum[:])
}
