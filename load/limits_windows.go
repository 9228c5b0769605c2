package load

import "golang.org/x/sys/windows"

// RaiseFiles does nothing: sockets are not counted among open files here.
func RaiseFiles() (uint64, error) { return 0, nil }

// goneErrors say that the peer has closed a connection.
var goneErrors = []error{windows.WSAECONNRESET, windows.WSAECONNABORTED}

// filesMost is the limit on open files; 0: not known.
func filesMost() uint64 { return 0 }

// wholeUsage returns a reader of what the whole process has used of the processor.
func wholeUsage() func() threadUsage {
	var made, ended, kernel, user windows.Filetime
	return func() (u threadUsage) {
		if windows.GetProcessTimes(windows.CurrentProcess(), &made, &ended, &kernel,
			&user) == nil {
			u.cpuNs = ticks(kernel) + ticks(user)
		}
		return u
	}
}

// ticks is a length of time, in ns, which Windows counts in 100 ns.
func ticks(t windows.Filetime) int64 {
	return (int64(t.HighDateTime)<<32 | int64(t.LowDateTime)) * 100
}
