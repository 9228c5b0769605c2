module broken/access-log

go 1.26
