// Package record is the captured answer of a handler, as it is kept for the
// retries of an idempotent request: which answers are kept (Storable), what of
// their header (Filter), and how they are written down (Encode, Decode). For a
// gRPC method the last two are Metadata, EncodeReply and DecodeReply.
//
// A record outlives the process that wrote it, and is read by processes of
// other versions. So it says its version and ends in a checksum, and what
// cannot be read whole is an error and no answer: whoever gets it knows that
// the handler has run, and must not run it again.
package record
