package history

// A Size is the size of a client process.
type Size struct {
	Process int `json:"process"`
	// Goroutines is the largest number of goroutines of the process until At.
	Goroutines int   `json:"goroutines"`
	At         int64 `json:"at"`
}
