package script

import (
	"crypto/fips140"
	_ "embed"
	"encoding/hex"
	"strconv"
	"strings"

	"crypto/sha1" //nolint:gosec // Redis names a script by its SHA-1, and the scripts an attempt.
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
	Take, Enqueue, Renew, Release, Keep, Handover, Accept, Begin, Finish, Resolve, Outcome, Revoke, Vote, Withdraw, Rights Script

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

		Handover: newScript(tokenPart, handoverSource),

		Vote:     newScript(tokenPart, mode, leasePart, queuePart, voteSource),
		Withdraw: newScript(tokenPart, freedAlways, freePart, mode, leasePart, queuePart, withdrawSource),
		Rights:   newScript(tokenPart, rightsSource),

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
