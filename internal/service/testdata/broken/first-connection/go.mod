module broken/first-connection

go 1.26
