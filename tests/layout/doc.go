// Package layout holds tests of the guards of this repository: the linter's rules of
// imports and the paths that scripts name. A guard whose path is stale guards nothing,
// and says nothing either; these tests do.
package layout
