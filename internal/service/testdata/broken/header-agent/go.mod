module broken/header-agent

go 1.26
