module broken/wrong-status

go 1.26
