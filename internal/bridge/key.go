package bridge

import "context"

// A Node is the inside of a core.Key[R].
type Node[R any] struct {
	// Read reads the key of one request. It is nil for several keys.
	Read func(Env, R) (RequestKey, error)
	// All are the keys of core.All.
	All []Node[R]
	// About says what the key reads, without running it. It is nil in the zero Key.
	About *About
}

// DefaultMaxBody is core.WithMaxBody if it is not set: 1 MiB.
const DefaultMaxBody int64 = 1 << 20

// An Env is what reading a key needs beside the request.
type Env struct {
	MaxBody int64 // of core.WithMaxBody
	Drop    *bool // true if the request ignores the key and its error; nil counts as false
}

// A RequestKey is the inside of a core.RequestKey.
type RequestKey struct {
	Raw  string
	Name string // "" unless Named has set it; never part of the key
	// Limit is that of Permits, Shared or SharedWhen, if HasLimit is true.
	Limit    int
	HasLimit bool
}

// An About says what a core.Key reads.
type About struct {
	Text string // how a program writes the key
	// Call and Part describe the key in errors: how a program calls it, and what a client has to
	// mend. An empty Call leaves that to the parts.
	Call, Part string
	Tags       []any // of adapter.Tag, those of the parts included
	NeedsWait  bool  // it has SharedWhen
	Limits     []int // of Permits, Shared and SharedWhen, except that of a request that locks the key alone
	ReadsBody  bool
	Several    bool     // it is several keys of All
	Names      []string // that its events may have: "" for none
}

// Held are the locks of a request: see core.Enter. A function would need memory for each request.
type Held interface{ Release() }

// A Bound is a core.Key with the core.Locker of its middleware.
type Bound[R any] struct {
	// Enter is core.Enter, unless drop is true after the keys were read: then it takes no lock,
	// reports nothing, and returns a nil Held.
	Enter func(ctx context.Context, r R, drop *bool) (locked context.Context, held Held, err error)
	// ReadOne reads the key of an idempotent request. An error is reported. name is the name of the
	// key unless Named has set one.
	ReadOne func(ctx context.Context, r R, name string) (RequestKey, error)
	// Begin begins an attempt, a *core.Attempt, at the request with this key on an endpoint. It is
	// core.Locker.Begin with the name of the key.
	Begin func(ctx context.Context, key RequestKey, method, route string, fingerprint []byte) (attempt any, err error)
	// Refuse reports that the request with this key is refused because its fingerprint cannot be read,
	// and returns the error for its refusal.
	Refuse func(context.Context, RequestKey, error) error
	// Own returns the error for the refusal of an idempotent request, which is not reported.
	Own func(error) error
}

var (
	// NodeOf returns the Node[R] of a core.Key[R].
	NodeOf func(key any) (node any)
	// KeyOf returns the core.Key[R] of a Node[R]. like is any core.Key[R].
	KeyOf func(like, node any) (key any)
	// AboutOf returns what a core.Key reads, or nil for the zero Key.
	AboutOf func(key any) *About
	// CheckLimits returns the error with which a *core.Locker refuses each request with one of the
	// Limits of a core.Key, or nil.
	CheckLimits func(locker, key any) error
	// Bind returns the *Bound[R] of a *core.Locker and a core.Key[R]. It reports the names of the key
	// to the observers.
	Bind func(locker, key any, idempotent bool) (bound any)
	// IsTwice reports whether Held are locks that a middleware outside with the same key has taken for
	// the request with this target. l is the *core.Locker of the Bound. The target of another request
	// under the locks differs, as of a batch, or of one that is routed again. It is "" for an RPC.
	IsTwice func(held Held, l any, target string) bool
	// DescribeError returns the error of reading a request as that of a key with this description.
	DescribeError func(err error, call, part string) error
	// DescriptionOf returns the call and the part of core.Key.Describe in the error of a key. The call
	// is "" in any other error.
	DescriptionOf func(err error) (call, part string)
)
