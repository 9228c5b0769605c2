// Package socket has what the engines share below their interface: conversion of addresses,
// creation of sockets, and common errors. It keeps no sockets.
package socket

import "errors"

// Errors of engines that need more explanation than the kernel's.
var (
	ErrNone  = errors.New("no more sockets" + more())
	ErrEarly = errors.New("the server answered the request before this one before it had read it")
)
