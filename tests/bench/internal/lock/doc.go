// Package lock puts reqlock and the locks that it is compared with behind one
// small interface. Each is used the way its documentation shows, with the
// settings that make it fastest on a server nearby: Kind.Setting says which.
package lock
