module broken/missing-route

go 1.26
