package redisstore

import (
	"crypto/sha1" //nolint:gosec // Redis names a script by its SHA-1.
	_ "embed"
	"encoding/hex"
	"strconv"
	"strings"
)

// The parts that scripts share, and the scripts.
var (
	//go:embed lease.lua
	leasePart string
	//go:embed line.lua
	linePart string
	//go:embed fence.lua
	fencePart string
	//go:embed ask.lua
	askPart string
	//go:embed leave.lua
	leavePart string
	//go:embed record.lua
	recordPart string
	//go:embed free.lua
	freePart string

	//go:embed take.lua
	takeSource string
	//go:embed enqueue.lua
	enqueueSource string
	//go:embed renew.lua
	renewSource string
	//go:embed release.lua
	releaseSource string
	//go:embed done.lua
	donePart string
	//go:embed begin.lua
	beginSource string
	//go:embed finish.lua
	finishSource string
	//go:embed resolve.lua
	resolveSource string
	//go:embed vote.lua
	voteSource string
	//go:embed withdraw.lua
	withdrawSource string
)

// scripts holds each script with its digest.
type scripts struct{ take, enqueue, renew, release, begin, finish, resolve, vote, withdraw script }

// newScripts returns those whose grants are durable, or are not: see lease.lua.
func newScripts(durable bool) scripts {
	mode := "local durable = " + strconv.FormatBool(durable) + "\n"
	return scripts{
		take:    newScript(mode, takeSource),
		enqueue: newScript(mode, leasePart, linePart, fencePart, askPart, enqueueSource),
		renew:   newScript(mode, leasePart, fencePart, renewSource),
		release: newScript(freePart, mode, leasePart, linePart, leavePart, releaseSource),
		begin:   newScript(donePart, mode, leasePart, linePart, leavePart, fencePart, askPart, recordPart, beginSource),
		finish:  newScript(mode, leasePart, linePart, leavePart, recordPart, finishSource),
		resolve: newScript(resolveSource),

		vote:     newScript(mode, leasePart, linePart, voteSource),
		withdraw: newScript(mode, leasePart, linePart, withdrawSource),
	}
}

// A script is a Lua source and the digest under which a server knows it.
type script struct{ source, sha any } // text, boxed once

// newScript joins the parts to one script.
func newScript(parts ...string) script {
	source := strings.Join(parts, "")
	sum := sha1.Sum([]byte(source)) //nolint:gosec // Redis names a script by its SHA-1.
	return script{source: source, sha: hex.EncodeToString(sum[:])}
}
