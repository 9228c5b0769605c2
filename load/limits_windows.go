package load

import "golang.org/x/sys/windows"

// RaiseFiles does nothing, because Windows does not count sockets as open files.
func RaiseFiles() (uint64, error) { return 0, nil }

// goneErrors are the errors after the peer has closed a connection.
var goneErrors = []error{windows.WSAECONNRESET, windows.WSAECONNABORTED}

// filesMost returns the limit on open files; 0: unknown.
func filesMost() uint64 { return 0 }

// wholeUsage returns a function that reads the CPU time of the whole process.
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

// ticks converts a duration from units of 100 ns to ns.
func ticks(t windows.Filetime) int64 {
	return (int64(t.HighDateTime)<<32 | int64(t.LowDateTime)) * 100
}
