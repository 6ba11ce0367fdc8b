package adapter

import "strconv"

// The codes of gRPC, which Connect has, too.
const (
	rpcOK uint32 = iota
	rpcCanceled
	rpcUnknown
	rpcInvalidArgument
	rpcDeadlineExceeded
	rpcNotFound
	rpcAlreadyExists
	rpcPermissionDenied
	rpcResourceExhausted
	rpcFailedPrecondition
	rpcAborted
	rpcOutOfRange
	rpcUnimplemented
	rpcInternal
	rpcUnavailable
	rpcDataLoss
	rpcUnauthenticated
)

// codeName returns the name of a code as gRPC for Go writes it.
func codeName(code uint32) string {
	names := [...]string{
		rpcOK: "OK", rpcCanceled: "Canceled", rpcUnknown: "Unknown", rpcInvalidArgument: "InvalidArgument",
		rpcDeadlineExceeded: "DeadlineExceeded", rpcNotFound: "NotFound", rpcAlreadyExists: "AlreadyExists",
		rpcPermissionDenied: "PermissionDenied", rpcResourceExhausted: "ResourceExhausted",
		rpcFailedPrecondition: "FailedPrecondition", rpcAborted: "Aborted", rpcOutOfRange: "OutOfRange",
		rpcUnimplemented: "Unimplemented", rpcInternal: "Internal", rpcUnavailable: "Unavailable",
		rpcDataLoss: "DataLoss", rpcUnauthenticated: "Unauthenticated",
	}
	if uint64(code) < uint64(len(names)) { // an int of 32 bits would be negative
		return names[code]
	}
	return "Code(" + strconv.FormatUint(uint64(code), 10) + ")"
}

// deterministic reports whether a copy of the call would get the same code again: the
// call was executed, or its content was refused. All other codes depend on
// credentials, rights, capacity, other state, or a failure of the server, and can
// differ for the next call.
func deterministic(code uint32) bool {
	switch code {
	case rpcOK, rpcInvalidArgument, rpcNotFound, rpcAlreadyExists, rpcFailedPrecondition, rpcOutOfRange, rpcUnimplemented:
		return true
	default:
		return false
	}
}

// frees reports whether a code says that the call was not executed, and that another
// attempt may end in another way. It is one of credentials, of rights, or of another call
// that was in the way.
func frees(code uint32) bool {
	return code == rpcUnauthenticated || code == rpcPermissionDenied || code == rpcAborted
}

// saysNothing reports whether a code leaves the outcome of a call unknown: the handler
// failed in the middle, or it returns the code of another service that did. That is each
// code that says neither what became of the call nor that nothing did. UNAVAILABLE is among
// them, because a gRPC client returns it if a connection breaks after the request was sent,
// and RESOURCE_EXHAUSTED, because a client returns it for a reply above its own limit. A
// code that gRPC does not define counts as UNKNOWN.
func saysNothing(code uint32) bool { return !deterministic(code) && !frees(code) }
