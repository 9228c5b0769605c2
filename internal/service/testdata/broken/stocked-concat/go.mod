module broken/stocked-concat

go 1.26
