package catalogue

// A Kind says how far something holds, of a row, and what is shown, of a test.
type Kind string

const (
	// Holds is what the lock does right by itself, shown with real parts.
	Holds Kind = "holds"
	// Emulated holds too, but what happens is played by something that looks the
	// same from where the lock stands.
	Emulated Kind = "emulated"
	// Loss is where Redis itself forgets. A lock in it cannot be exclusive then,
	// and the row says what protects its user.
	Loss Kind = "loss"
	// Limit is what no lock of this kind can do. The row says what protects its
	// user.
	Limit Kind = "limit"
	// Absent is a fault of something that does not exist here. It has no test.
	Absent Kind = "absent"
)

// words are how the page says it.
func (k Kind) words() string {
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
