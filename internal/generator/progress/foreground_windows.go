package progress

import "os"

// foreground says that the process may read keys: there are no jobs in the background here.
func foreground(*os.File) bool { return true }
