package portguard

import "fmt"

// filesBeside is the number of open files of a server beside its connections.
const filesBeside = 64

// Fit returns the number of connections to a port, at most most, for which the limit on open files
// of this process suffices if each needs so many files. It fails if these are fewer than least; its
// error and the warning name the limit. There is no warning if the limit suffices for most.
func Fit(least, most, files int) (connections int, warning string, err error) {
	return fit(openFiles(), least, most, files)
}

func fit(limit uint64, least, most, files int) (connections int, warning string, err error) {
	enough := filesBeside + most*files
	if limit == 0 || limit >= uint64(enough) {
		return most, "", nil
	}
	connections = max(int(limit)-filesBeside, 0) / files
	if connections < least {
		return 0, "", fmt.Errorf("this process may have %d open files, but it needs at least %d: "+
			"raise the limit with ulimit -n %d", limit, filesBeside+least*files, enough)
	}
	return connections, fmt.Sprintf("at most %d connections at a time instead of %d, because this "+
		"process may have %d open files: raise the limit with ulimit -n %d", connections, most,
		limit, enough), nil
}
