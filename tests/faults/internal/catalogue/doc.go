// Package catalogue lists what can fail in a distributed lock in front of requests, and the
// tests that show how this lock behaves.
//
// # Rows
//
// A [Row] is one way to fail: what happens, what the lock must do, and how far that holds.
// The rows are in eight groups, from taking a lock to shared locks, each group in a file of its
// own.
//
// # Directives
//
// A test names the rows that it shows by directives in its doc comment:
//
//	//faults:row 27
//	//faults:row 8, 9
//	//faults:row 35: the cases "panic" and "Goexit"
//	//faults:row 15 emulated: PEXPIRE stands for a jump of the server's clock
//
// After the numbers a directive may name the kind of the proof, if it is [Emulated], [Loss]
// or [Limit], and, after a colon, add a note. A test may have several directives. [Scan]
// finds them in all modules of the repository.
//
// # The page
//
// README.md of the module faults shows the rows with their tests. [Page] writes the parts
// between its markers:
//
//	go generate ./internal/catalogue
//
// A test of this package fails if the page is stale, if a row has no test, and if a
// directive names an unknown row or is not at a test.
package catalogue

//go:generate go run ./write
