package history

// A Disruption is something that was broken on purpose for some time.
type Disruption struct {
	Name string `json:"name"`
	From int64  `json:"from"`
	To   int64  `json:"to,omitempty"` // 0 if it lasted to the end
	// Loss declares that data which Redis had confirmed may be gone after it.
	// What was granted before its end is believed in by its holder, and by
	// nobody else.
	Loss bool `json:"loss,omitempty"`
	// Keys are the keys that a loss is of, as clients call them; of all if there are
	// none.
	Keys []string `json:"keys,omitempty"`
}

// A ProcessFailure is a client process that was killed, or stood still.
type ProcessFailure struct {
	Process int   `json:"process"`
	From    int64 `json:"from"`
	To      int64 `json:"to,omitempty"` // when it went on; 0 if it was killed
}

// A Lag is a time in which the machine did not let a client process run, as far as that
// noticed itself.
type Lag struct {
	Process int   `json:"process"`
	From    int64 `json:"from"`
	To      int64 `json:"to"`
}

// A History is all that is known of one run.
type History struct {
	Name       string `json:"name"` // of the fault
	Deployment string `json:"deployment"`
	Seed       uint64 `json:"seed"`
	TTL        int64  `json:"ttl"`   // of each lease, in ns
	Claim      int64  `json:"claim"` // how long a key may be claimed for a waiter who is gone
	// CommandTimeout is for how long the lock waits for the reply to one command,
	// in ns; 0 if that is not known.
	CommandTimeout int64 `json:"command_timeout,omitempty"`
	Begun          int64 `json:"begun"`
	Ended          int64 `json:"ended"`
	Recovered      int64 `json:"recovered"` // when nothing was broken any more; 0 if never
	// Unfenced says that no client asked for a fence: a quorum has none.
	Unfenced bool `json:"unfenced,omitempty"`
	// Careless says that clients worked on beyond what their leases said: the
	// negative control, in which updates of an unfenced register must get lost.
	Careless bool `json:"careless,omitempty"`

	Ops             []Op             `json:"ops"`
	Accesses        []Access         `json:"accesses"`
	Effects         []Effect         `json:"effects"`
	Disruptions     []Disruption     `json:"disruptions"`
	ProcessFailures []ProcessFailure `json:"process_failures"`
	Lags            []Lag            `json:"lags,omitempty"`
	// FastLeases are of clients that work at full speed; Sizes are of processes that came to
	// their own end.
	FastLeases []FastLease `json:"fast_leases,omitempty"`
	Sizes      []Size      `json:"sizes,omitempty"`
	// AheadCounters are of counters that were deleted.
	AheadCounters []AheadCounter `json:"ahead_counters,omitempty"`
}
