package console

// An ActionKind is one of the actions of an operator.
type ActionKind int

// The actions.
const (
	// Revoke ends leases as inspect.Inspector.Revoke does: nobody overlaps with the holder.
	Revoke ActionKind = iota + 1
	// FreeNow ends leases at once, as inspect.Inspector.FreeNow does: for a holder that is dead.
	FreeNow
	// Resolve ends an unknown outcome: by core.Done or by core.NotDone.
	Resolve
)

// String returns the kind as in a form.
func (k ActionKind) String() string {
	switch k {
	case Revoke:
		return "revoke"
	case FreeNow:
		return "free_now"
	case Resolve:
		return "resolve"
	default:
		return "invalid"
	}
}

// kindOf returns the kind with this name, or 0.
func kindOf(name string) ActionKind {
	for kind := Revoke; kind <= Resolve; kind++ {
		if kind.String() == name {
			return kind
		}
	}
	return 0
}
