// Package catalogue is the list of what can go wrong with a distributed lock in
// front of requests, and of the tests that show what becomes of it here.
//
// # Rows
//
// A [Row] is one way to fail, in plain words: what happens, what is right then,
// and how far that holds. The rows are in seven groups, from taking a lock
// to replaying an answer, each in a file of its own.
//
// # Directives
//
// Which test shows a row stands beside the test, as a directive in its doc
// comment:
//
//	//faults:row 27
//	//faults:row 8, 9
//	//faults:row 35: the cases "panic" and "Goexit"
//	//faults:row 15 emulated: PEXPIRE stands for a jump of the server's clock
//
// The numbers may be followed by what kind of proof it is, where it is not a
// plain one ([Emulated], [Loss] or [Limit]), and by a note after a colon. A test
// may have several of them. [Scan] finds them in all modules of the repository.
//
// # The page
//
// README.md of the module faults shows the rows with their tests. What [Page]
// writes between its markers is generated:
//
//	go generate ./internal/catalogue
//
// A test of this package fails if the page is stale, if a row has no test, and
// if a directive names no row or stands elsewhere than at a test.
package catalogue

//go:generate go run ./write
