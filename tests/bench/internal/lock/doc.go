// Package lock gives reqlock and the locks that it is compared with one small interface.
// Each is used as its documentation shows, with its fastest settings for a nearby server:
// see Kind.Setting.
package lock
