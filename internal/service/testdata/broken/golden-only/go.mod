module broken/golden-only

go 1.26
