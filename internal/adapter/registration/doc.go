// Package registration checks the arguments of an adapter when a program registers its
// routes, and splits one list of options into core's options and the adapter's own.
package registration
