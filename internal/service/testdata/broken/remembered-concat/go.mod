module broken/remembered-concat

go 1.26
