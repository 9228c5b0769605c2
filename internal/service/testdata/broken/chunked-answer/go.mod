module broken/chunked-answer

go 1.26
