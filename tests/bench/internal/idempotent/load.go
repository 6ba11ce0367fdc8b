package idempotent

// A Case is the situation of a request.
type Case string

// The cases.
const (
	Plain  Case = "plain"  // the handler alone
	First  Case = "first"  // the middleware with a new key
	Replay Case = "replay" // the middleware with a key whose answer is stored
)

// A Load is the number of callers and their keys.
type Load struct {
	Name    string
	Title   string
	Callers int
	OneKey  bool // all callers send one key, instead of one each
}

// The names of the loads.
const (
	Alone   = "1"
	OwnKeys = "32"
	OneKey  = "32-one-key"
)

// Loads returns all loads.
func Loads() []Load {
	return []Load{
		{Name: Alone, Title: "one caller", Callers: 1},
		{Name: OwnKeys, Title: "32 callers, each with keys of its own", Callers: 32},
		{Name: OneKey, Title: "32 callers, one key", Callers: 32, OneKey: true},
	}
}

// Cases returns the cases of a load. A key that all callers send is new only once, and does
// not matter to the plain handler.
func (l Load) Cases() []Case {
	if l.OneKey {
		return []Case{Replay}
	}
	return []Case{Plain, First, Replay}
}
