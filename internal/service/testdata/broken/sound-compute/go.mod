module broken/sound-compute

go 1.26
