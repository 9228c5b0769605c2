module units

go 1.26
