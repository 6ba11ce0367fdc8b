// Package child runs jobs in processes of their own, which are this program
// again. Each run begins with a fresh heap and fresh connections, uses its own
// CPU time, and several processes contend as the instances of a service do.
//
// Parent and child talk in JSON over the child's standard input and output:
//
//	parent  the job
//	child   that it is ready: connected and warm
//	parent  the moment to begin, the same for all children
//	child   the result
//
// A child whose input ends stops at once, so none outlives its parent.
package child
