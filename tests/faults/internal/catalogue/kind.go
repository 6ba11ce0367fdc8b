package catalogue

// A Kind says how far a row holds, or what a test shows.
type Kind string

const (
	// Holds means that the lock behaves rightly by itself, shown with real parts.
	Holds Kind = "holds"
	// Emulated means that the row holds, but that the test emulates the failure.
	Emulated Kind = "emulated"
	// Loss means that Redis loses data. A lock in Redis cannot exclude then. The row says
	// what protects its user.
	Loss Kind = "loss"
	// Limit means that no lock of this kind can do it. The row says what protects its user.
	Limit Kind = "limit"
	// Absent means that the failure cannot happen here. The row has no test.
	Absent Kind = "absent"
)

// description returns the text for the page.
func (k Kind) description() string {
	switch k {
	case Emulated:
		return "holds (emulated)"
	case Loss:
		return "documented loss"
	case Limit:
		return "cannot hold"
	case Absent:
		return "does not apply"
	default:
		return string(k)
	}
}
