// Package subprocess runs a test of the running test binary in a process of its own, so
// that tests can kill, pause and count real processes.
//
// The parent calls [Start] with the name of a test and its orders, which are any value
// that JSON can encode. In the child, that test calls [Orders], which returns the orders;
// in every other process Orders skips the test. The child reports to its parent by
// [Report], and serves until [AwaitStop] returns.
//
// A child ends at the latest with the test that started it. On Linux it also ends when the
// test binary dies without running its cleanups.
package subprocess
