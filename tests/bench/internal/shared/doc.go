// Package shared checks from the outside whether a lock excludes. It keeps one
// page of memory that all processes of a run see, where holders leave their
// number: a second holder finds it, whatever the lock says.
package shared
