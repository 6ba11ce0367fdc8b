// Package compare runs the locks side by side: each suite puts one load on all
// of them.
package compare
