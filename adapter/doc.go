// Package adapter is for authors of adapters, which run the requests of a framework under locks of
// core. Programs need only core and an adapter.
package adapter
