// Package shared checks from outside whether a lock excludes. All processes of a run map
// one page of memory. A holder writes its number there, so a second holder finds it,
// whatever the lock reports.
package shared
