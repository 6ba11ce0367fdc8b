// Package protomsg makes keys of the messages and methods of protobuf services, for authors of RPC
// adapters. It is apart from package adapter, so that an HTTP adapter does not link protobuf.
//
// The keys are tagged at registration with what they read. So no call is read for that, and a mistake
// is found before the first call.
package protomsg
