package entry

// Parse is for tests, which are in another package: tests of this package would make its
// initialisation follow that of all their imports.
var Parse = parse
