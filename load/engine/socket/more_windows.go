package socket

// more says how to do with what there is.
func more() string { return "; ask for fewer connections" }
