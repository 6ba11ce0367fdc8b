package history

// A Size is how big a client process has become.
type Size struct {
	Process int `json:"process"`
	// Goroutines is the largest number of goroutines that the process has seen of
	// itself, up to At.
	Goroutines int   `json:"goroutines"`
	At         int64 `json:"at"`
}
