module broken/constant-answer

go 1.26
