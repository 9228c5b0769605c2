module broken/hello

go 1.26
