// Package jobprocess runs jobs in processes of their own, by starting this program again. Each
// run begins with an empty heap and new connections, and its CPU time is its own. Several
// processes compete like the instances of a service.
//
// Parent and child exchange JSON over the standard input and output of the child:
//
//	parent  the job
//	child   ready: connected and warmed up
//	parent  the start time, the same for all children
//	child   the result
//
// A child stops when its input ends, so none outlives its parent.
package jobprocess
