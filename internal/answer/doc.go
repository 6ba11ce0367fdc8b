// Package answer encodes the answer of a handler, which is stored for retries of an
// idempotent request. It defines which answers are stored (Storable), which of their headers
// (Filter), and in which format (Encode, Decode). For gRPC methods these are Metadata,
// EncodeReply and DecodeReply. A core.Answer holds an encoded one that an operator gives.
//
// Processes of other versions read a record after the process that wrote it has ended. So a
// record contains its version and ends in a checksum. A record that cannot be read completely
// is an error: it means that the handler has run, and must not run again.
package answer
