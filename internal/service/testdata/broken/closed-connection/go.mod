module broken/closed-connection

go 1.26
