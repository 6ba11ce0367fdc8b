// Package protomsg has what grpclock and protolock share: which messages and methods the keys of
// calls are made for, and an option for the interceptors of what .proto files declare.
//
// grpclock tags its keys at registration. So no key is read, and a mistake is found before the first
// call.
package protomsg
