module broken/sound-hello

go 1.26
