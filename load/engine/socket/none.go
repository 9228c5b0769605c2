// Package socket is what the engines of the generator have in common below their interface: how the
// kernel wants an address and a moment, and what is said when it has no socket to give. It holds no
// sockets itself.
package socket

import "errors"

// What engines tell where the kernel's words would not help.
var (
	ErrNone  = errors.New("no more sockets" + more())
	ErrEarly = errors.New("the server answered the request before this one before it had read it")
)
