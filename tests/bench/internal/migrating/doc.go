// Package migrating checks the Go code of docs/migrating.md that uses other locks. Only this
// module requires them.
package migrating
