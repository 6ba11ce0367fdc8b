package engine

import "time"

// Request.MinHold leaves a key locked after the release of its holder. The lease does not
// pass to another caller. The release gives the key a value that is no token, so neither
// this process nor another one frees it before it expires. The waiters ask as behind a
// foreign client.

// WaiveMinHold makes the release of the hold free the key at once. It is for a caller that
// has not used the lease.
func (h *Hold) WaiveMinHold() {
	h.shard.mu.Lock()
	defer h.shard.mu.Unlock()
	h.request.MinHold = 0
}

// keepKey decides whether the key stays locked after the release that begins now, and
// reports it. A caller that never learned of the hold has not used it.
func (h *Hold) keepKey() bool {
	if h.ticketToken() != "" {
		h.keepsKey = true
		return true
	}
	if h.request.MinHold == 0 || h.unreported || h.request.Attempt != nil || h.request.Limit.IsShared() {
		return false
	}
	h.keepsKey = true
	return h.keepFor() > 0
}

// keepFor returns for how long the key stays locked, in whole milliseconds, rounded up. h may
// be nil.
func (h *Hold) keepFor() time.Duration {
	if h == nil || !h.keepsKey {
		return 0
	}
	rest := time.Until(h.since.Add(h.request.MinHold))
	if h.ticketToken() != "" {
		rest = h.result.ticket.grace
	}
	rest += time.Millisecond - 1
	return max(rest.Truncate(time.Millisecond), 0)
}
