module broken/compute

go 1.26
