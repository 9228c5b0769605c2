module broken/header-bare

go 1.26
