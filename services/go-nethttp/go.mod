module go-nethttp

go 1.26
