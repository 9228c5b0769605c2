module broken/counted-concat

go 1.26
