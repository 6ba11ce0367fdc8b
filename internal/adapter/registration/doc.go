// Package registration checks what an adapter is given when a program registers
// its routes, and sorts the options of one list into core's and the adapter's.
package registration
