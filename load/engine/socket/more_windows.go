package socket

// more returns advice if no socket is available.
func more() string { return "; ask for fewer connections" }
