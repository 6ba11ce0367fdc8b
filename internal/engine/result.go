package engine

// A releaseResult is what the caller that waits for a release gets.
type releaseResult struct {
	err    error   // a fault of the release
	events []Event // not observed yet
	ticket *ticket // the key goes to this ticket; nil is none
}

// outcome returns the result of the release, and observes its events.
func (h *Hold) outcome() (Loss, error) {
	h.shard.mu.Lock()
	h.awaited = false
	loss, got := h.loss, releaseResult{}
	if h.result != nil {
		got, h.result.events = *h.result, nil
	}
	h.shard.mu.Unlock()
	h.engine.observeAll(got.events)
	return loss, got.err
}

// report passes an event of the hold to the caller that waits for the release, or else to the
// queue.
func (h *Hold) report(event Event, after *callbacks) {
	if !h.awaited {
		h.engine.report(event, after)
	} else if h.engine.observes(event) {
		r := h.ownResult()
		r.events = append(r.events, event)
	}
}

// ownResult returns the result of the release, and makes one if there is none.
func (h *Hold) ownResult() *releaseResult {
	if h.result == nil {
		h.result = &releaseResult{}
	}
	return h.result
}
