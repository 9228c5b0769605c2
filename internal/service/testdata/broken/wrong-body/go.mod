module broken/wrong-body

go 1.26
