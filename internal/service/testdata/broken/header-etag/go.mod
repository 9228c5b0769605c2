module broken/header-etag

go 1.26
