module broken/compressed-answer

go 1.26
