// Package compare runs the locks side by side: each suite runs one load with each of them.
package compare
