// Package docs checks README.md and the pages of the folder docs: their Go code, and the tables of
// options.
//
// A block that begins with a package clause is a whole file. Any other block is a snippet:
// it has no imports, and it may use names that the page does not declare, such as ctx and
// locks. Packages below the folder prelude declare these names. Each page says with a comment
// before the fence which prelude a snippet uses; without a comment, it is http:
//
//	<!-- go: gin -->
//	```go
//	r.POST("/payments", auth, ginlock.Idempotent(locks, key), pay)
//	```
//
// Snippets that use other locks have the prelude peers, in the module tests/bench, since only
// that module requires them. Its test calls this package.
//
// The preludes echov5, fiber and connect are in the modules echov5lock, fiberlock and connectlock, and so are
// their tests.
//
// Blocks with the prelude example are parts of the files of an example or of the module
// tests/frameworks, word for word, and those with clients are parts of a file of the module tests/clients, whose test compares them.
//
// The types are checked by go/types, with what the compiler made of the imported packages.
package docs
