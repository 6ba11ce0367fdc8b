// Package suite runs the tests of a package with the settings of this project.
//
// Each package of tests has one line:
//
//	func TestMain(m *testing.M) { suite.Main(m) }
//
// It runs parallel tests sixteen at a time, because most of them wait, and it fails if
// goroutines are left. There are two tiers: go test ./... runs the fast tier, and
// REQLOCK_FULL=1 go test ./... runs all tests. A test that is long by nature calls
// [Full], which skips it in the fast tier. A test that waits for a condition calls
// [Eventually].
package suite
