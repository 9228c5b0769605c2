module broken/header-echo

go 1.26
