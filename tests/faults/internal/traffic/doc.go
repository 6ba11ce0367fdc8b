// Package crew is the clients of a run: processes that take locks, work under
// them and begin attempts, and that can be killed or made to stand still. The
// program starts itself again to be one: see Main, and package client for what
// becomes of it there.
//
// A process tells of each call before it makes it and after it returned, so that
// a death loses nothing but what nobody heard.
package traffic
