package entry

// Parse is for tests, which are another package: one of this package would have it initialised
// after all that they import.
var Parse = parse
