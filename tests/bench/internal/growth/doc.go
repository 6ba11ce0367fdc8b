// Package growth measures how the cost of reqlock grows: with the number of
// keys, and with the number of waiters for one key.
package growth
