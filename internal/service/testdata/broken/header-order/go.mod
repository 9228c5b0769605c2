module broken/header-order

go 1.26
